//! The README's excerpt is the page's own text, and the commands that it names exist.

use crate::support::root;
use std::fs;
use std::process::Command;

const BEGIN: &str = "<!-- excerpt of reports/arm_1/sign-09.md: begin -->\n";
const END: &str = "<!-- excerpt: end -->";

/// Heading, rule and first rows of the performance table.
const LINES: usize = 5;

/// The excerpt as the page, rendered now from its dataset, has it.
fn excerpt() -> String {
    let folder = tempfile::tempdir().unwrap();
    let pages = harness::report::render_run(
        &root().join("performance/data/arm_1/public-2026"),
        folder.path(),
    )
    .unwrap();
    let page = pages
        .iter()
        .find(|page| page.ends_with("sign-09.md"))
        .cloned()
        .unwrap_or_else(|| folder.path().join("sign-09.md"));
    let text = fs::read_to_string(page).unwrap();
    let table = &text[text.find("| instance | operation | mean cycles").unwrap()..];
    let mut lines: String = table.lines().take(LINES).collect::<Vec<_>>().join("\n");
    lines.push('\n');
    lines
}

#[test]
fn the_excerpt_is_what_the_page_says() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, rest) = readme.split_once(BEGIN).expect("the excerpt begins");
    let (found, _) = rest.split_once(END).expect("the excerpt ends");
    assert_eq!(found, excerpt(), "put the right-hand side into README.md");
}

#[test]
fn every_command_of_the_readme_exists() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, rest) = readme.split_once("## Commands").unwrap();
    let (table, _) = rest.split_once("`campaign COMMAND --help`").unwrap();
    let mut named = 0;
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cell = row.split('|').nth(1).unwrap();
        for name in cell.split('`').skip(1).step_by(2) {
            let mut command = Command::new(assert_cmd::cargo::cargo_bin("campaign"));
            let output = command
                .args(name.split(' '))
                .arg("--help")
                .output()
                .unwrap();
            assert!(output.status.success(), "`campaign {name}` is not there");
            named += 1;
        }
    }
    assert!(named > 10, "the table was read");
}

#[test]
fn every_command_that_exists_is_in_the_readme() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("campaign"));
    let output = command.arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, rest) = help.split_once("Commands:\n").unwrap();
    let (list, _) = rest.split_once("\n\n").unwrap();
    // Descriptions that are continued on a further line are indented more.
    let commands = list.lines().filter(|line| !line.starts_with("   "));
    let mut named = 0;
    for name in commands.filter_map(|line| line.split_whitespace().next()) {
        let cell = [format!("`{name}`"), format!("`{name} ")];
        let is_named = readme
            .lines()
            .filter(|line| line.starts_with("| `"))
            .any(|row| {
                cell.iter()
                    .any(|c| row.split('|').nth(1).unwrap().contains(c))
            });
        assert!(is_named, "`{name}` is in no row of the README's table");
        named += 1;
    }
    assert!(named > 20, "the list was read: {named}");
}
