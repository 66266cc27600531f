//! HTML from the Markdown of a page: the same text, with what Markdown cannot say of its own (table
//! captions and header scopes, charts inside the page, links between HTML pages). The parser and
//! most of the writing are comrak's; what is written differently is here.
//!
//! Three conventions carry over from Markdown: a paragraph that is one emphasis right before a table
//! is its caption; a paragraph that is one image of a chart is a figure; a relative link to `*.md`
//! leads to `*.html`.

use super::escape;
use comrak::html::{format_document_with_formatter, format_node_default, ChildRendering, Context};
use comrak::nodes::{AstNode, NodeLink, NodeValue, TableAlignment};
use comrak::options::Plugins;
use comrak::{parse_document, Arena, Options};
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// Charts by their file name as Markdown names it: SVG text.
pub type Charts = BTreeMap<String, String>;

/// The dialect of the pages: CommonMark with tables, footnotes and alerts. HTML in it is text.
pub fn markdown_options() -> Options<'static> {
    let mut options = Options::default();
    options.extension.table = true;
    options.extension.footnotes = true;
    options.extension.alerts = true;
    options.render.escape = true;
    options
}

/// The body of an HTML page.
pub fn body(markdown: &str, charts: &Charts) -> String {
    let arena = Arena::new();
    let options = markdown_options();
    let root = parse_document(&arena, markdown, &options);
    let mut out = String::with_capacity(markdown.len() * 3);
    let state = State {
        charts,
        captions: 0,
        captioned: false,
        in_notes: false,
        notes: 0,
    };
    format_document_with_formatter(
        root,
        &options,
        &mut out,
        &Plugins::default(),
        format_node,
        state,
    )
    .expect("writing to a string does not fail");
    out
}

/// Text of the first heading of a page.
pub fn first_heading(markdown: &str) -> Option<String> {
    let start = markdown.lines().position(|line| line.starts_with("# "))?;
    let line = markdown.lines().nth(start)?;
    let arena = Arena::new();
    let root = parse_document(&arena, line, &markdown_options());
    Some(root.collect_text())
}

/// What the formatter remembers.
struct State<'c> {
    charts: &'c Charts,
    /// Captions so far, for their ids.
    captions: u32,
    /// The next table has been opened by its caption.
    captioned: bool,
    /// The list of notes has been opened.
    in_notes: bool,
    /// Notes so far.
    notes: u32,
}

type Formatted = Result<ChildRendering, fmt::Error>;

fn format_node<'a>(
    context: &mut Context<State<'_>>,
    node: &'a AstNode<'a>,
    entering: bool,
) -> Formatted {
    match &node.data().value {
        NodeValue::Document => document(context, entering),
        NodeValue::Heading(heading) => self::heading(context, node, heading.level, entering),
        NodeValue::Paragraph if is_caption(node) => caption(context, entering),
        NodeValue::Emph if node.parent().is_some_and(is_caption) => Ok(ChildRendering::HTML),
        NodeValue::Paragraph if chart_of(context, node).is_some() => match entering {
            true => figure(context, node),
            false => Ok(ChildRendering::HTML),
        },
        NodeValue::Table(_) => table(context, entering),
        NodeValue::TableCell => table_cell(context, node, entering),
        NodeValue::Link(link) => self::link(context, link, entering),
        NodeValue::FootnoteDefinition(_) => note(context, entering),
        NodeValue::FootnoteReference(reference) if entering => {
            let again = match reference.ref_num {
                0 | 1 => String::new(),
                number => format!("-{number}"),
            };
            write!(
                context,
                "<sup><a href=\"#note-{0}\" id=\"mark-{0}{again}\" aria-label=\"note {0}\">{0}</a></sup>",
                reference.ix
            )?;
            Ok(ChildRendering::Skip)
        }
        _ => format_node_default(context, node, entering),
    }
}

/// Closes the list of notes at the end.
fn document(context: &mut Context<State<'_>>, entering: bool) -> Formatted {
    if !entering && context.user.in_notes {
        context.write_str("</ol>\n</section>\n")?;
    }
    Ok(ChildRendering::HTML)
}

/// A heading with an id, so that it can be linked to.
fn heading<'a>(
    context: &mut Context<State<'_>>,
    node: &'a AstNode<'a>,
    level: u8,
    entering: bool,
) -> Formatted {
    if entering {
        let id = context.anchorizer.anchorize(&node.collect_text());
        context.cr()?;
        write!(context, "<h{level} id=\"")?;
        if !id.starts_with(|c: char| c.is_ascii_alphabetic()) {
            context.write_str("section-")?;
        }
        context.escape(&id)?;
        context.write_str("\">")?;
    } else {
        writeln!(context, "</h{level}>")?;
    }
    Ok(ChildRendering::HTML)
}

/// One emphasis, and a table next.
fn is_caption<'a>(node: &'a AstNode<'a>) -> bool {
    let emphasis = matches!(node.data().value, NodeValue::Paragraph)
        && node
            .first_child()
            .is_some_and(|child| matches!(child.data().value, NodeValue::Emph))
        && node.children().count() == 1;
    emphasis
        && node
            .next_sibling()
            .is_some_and(|next| matches!(next.data().value, NodeValue::Table(_)))
}

fn caption(context: &mut Context<State<'_>>, entering: bool) -> Formatted {
    if entering {
        context.user.captions += 1;
        context.user.captioned = true;
        let id = context.user.captions;
        context.cr()?;
        write!(
            context,
            "<section class=\"table\" tabindex=\"0\" aria-labelledby=\"table-{id}\">\n<table>\n<caption id=\"table-{id}\">"
        )?;
    } else {
        context.write_str("</caption>\n")?;
    }
    Ok(ChildRendering::HTML)
}

fn table(context: &mut Context<State<'_>>, entering: bool) -> Formatted {
    if !entering {
        context.write_str("\n</tbody>\n</table>\n</section>\n")?;
    } else if !std::mem::take(&mut context.user.captioned) {
        context.cr()?;
        context.write_str("<section class=\"table\">\n<table>\n")?;
    }
    Ok(ChildRendering::HTML)
}

/// Header cells head a column, the first cell of a row heads the row.
fn table_cell<'a>(
    context: &mut Context<State<'_>>,
    node: &'a AstNode<'a>,
    entering: bool,
) -> Formatted {
    let (in_header, index, alignment) = place(node);
    let tag = if in_header || index == 0 { "th" } else { "td" };
    if !entering {
        write!(context, "</{tag}>")?;
        return Ok(ChildRendering::HTML);
    }
    context.cr()?;
    write!(context, "<{tag}")?;
    if in_header {
        context.write_str(" scope=\"col\"")?;
    } else if index == 0 {
        context.write_str(" scope=\"row\"")?;
    }
    if alignment == TableAlignment::Right {
        context.write_str(" class=\"n\"")?;
    }
    context.write_str(">")?;
    Ok(ChildRendering::HTML)
}

/// Whether a cell is in the header, its column, and that column's alignment.
fn place<'a>(cell: &'a AstNode<'a>) -> (bool, usize, TableAlignment) {
    let index = cell.preceding_siblings().count() - 1;
    let row = cell.parent();
    let in_header = row.is_some_and(|row| matches!(row.data().value, NodeValue::TableRow(true)));
    let alignment = row
        .and_then(|row| row.parent())
        .and_then(|table| match &table.data().value {
            NodeValue::Table(table) => table.alignments.get(index).copied(),
            _ => None,
        })
        .unwrap_or(TableAlignment::None);
    (in_header, index, alignment)
}

/// Links between pages lead to the HTML page; what could run is not linked at all.
fn link(context: &mut Context<State<'_>>, link: &NodeLink, entering: bool) -> Formatted {
    if !escape::is_harmless(&link.url) && !link.url.starts_with('#') {
        return Ok(ChildRendering::HTML);
    }
    if entering {
        context.write_str("<a href=\"")?;
        context.escape_href(&html_target(&link.url))?;
        context.write_str("\">")?;
    } else {
        context.write_str("</a>")?;
    }
    Ok(ChildRendering::HTML)
}

/// `a/b.md#c` becomes `a/b.html#c`; addresses with a scheme stay.
fn html_target(url: &str) -> String {
    let (path, fragment) = match url.split_once('#') {
        Some((path, fragment)) => (path, format!("#{fragment}")),
        None => (url, String::new()),
    };
    match path.strip_suffix(".md") {
        Some(stem) if !path.contains("://") => format!("{stem}.html{fragment}"),
        _ => url.to_owned(),
    }
}

/// Notes: a list at the end, each with one way back, to its first mark.
fn note(context: &mut Context<State<'_>>, entering: bool) -> Formatted {
    if entering {
        if !std::mem::replace(&mut context.user.in_notes, true) {
            context.cr()?;
            context.write_str(
                "<section class=\"notes\" aria-labelledby=\"notes\">\n<h2 id=\"notes\">Notes</h2>\n<ol>\n",
            )?;
        }
        context.user.notes += 1;
        let number = context.user.notes;
        write!(context, "<li id=\"note-{number}\">")?;
    } else {
        let number = context.user.notes;
        writeln!(
            context,
            "<a class=\"back\" href=\"#mark-{number}\" aria-label=\"back to the first mark of note {number}\">↩</a></li>"
        )?;
    }
    Ok(ChildRendering::HTML)
}

/// The chart that a paragraph is, if it is one.
fn chart_of<'a>(context: &Context<State<'_>>, node: &'a AstNode<'a>) -> Option<String> {
    let image = node.first_child()?;
    let NodeValue::Image(link) = &image.data().value else {
        return None;
    };
    (node.children().count() == 1 && context.user.charts.contains_key(&link.url))
        .then(|| link.url.clone())
}

/// A chart inside the page: the alternative text names it.
fn figure<'a>(context: &mut Context<State<'_>>, node: &'a AstNode<'a>) -> Formatted {
    let Some(name) = chart_of(context, node) else {
        return Ok(ChildRendering::HTML);
    };
    let svg = context.user.charts[&name].clone();
    let label = node
        .first_child()
        .map(AstNode::collect_text)
        .unwrap_or_default();
    context.cr()?;
    context.write_str("<figure class=\"chart\">\n")?;
    let rest = svg.strip_prefix("<svg ").unwrap_or(&svg);
    context.write_str("<svg role=\"img\" aria-label=\"")?;
    context.escape(&label)?;
    context.write_str("\" ")?;
    context.write_str(rest)?;
    context.write_str("\n</figure>\n")?;
    Ok(ChildRendering::Skip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(markdown: &str) -> String {
        body(markdown, &Charts::new())
    }

    #[test]
    fn a_caption_becomes_the_tables() {
        let out = html("*Times. Lower is better.*\n\n| a | n |\n|:--|--:|\n| x | 1 |\n\nAfter\n");
        assert!(
            out.contains("<caption id=\"table-1\">Times. Lower is better.</caption>"),
            "{out}"
        );
        assert!(
            out.contains("aria-labelledby=\"table-1\"") && out.contains("<th scope=\"row\">x</th>")
        );
        assert!(
            out.contains("<th scope=\"col\" class=\"n\">n</th>")
                && out.contains("<td class=\"n\">1</td>")
        );
        assert_eq!(out.matches("<table>").count(), 1);
        assert!(
            out.ends_with("</table>\n</section>\n<p>After</p>\n"),
            "{out}"
        );
    }

    #[test]
    fn notes_are_a_list_with_one_way_back_each() {
        let out = html("a[^1] b[^1] c[^2]\n\n[^1]: one\n[^2]: two\n");
        assert!(out
            .contains("<sup><a href=\"#note-1\" id=\"mark-1\" aria-label=\"note 1\">1</a></sup>"));
        assert!(out.contains("id=\"mark-1-2\"") && out.contains("<li id=\"note-2\">"));
        assert_eq!(out.matches("class=\"back\"").count(), 2);
        assert!(out.ends_with("</ol>\n</section>\n"), "{out}");
    }

    #[test]
    fn links_lead_to_the_html_pages_and_run_nothing() {
        let out = html("[a](b.md#c) [d](https://e.invalid/f.md) [g](javascript:1)");
        assert!(out.contains("<a href=\"b.html#c\">a</a>"));
        assert!(out.contains("<a href=\"https://e.invalid/f.md\">d</a>"));
        assert!(!out.contains("javascript"), "{out}");
    }

    #[test]
    fn html_in_markdown_is_text() {
        let out = html("<script>x</script>\n\n<b>y</b> z");
        assert!(!out.contains("<script") && !out.contains("<b>"), "{out}");
    }

    #[test]
    fn a_chart_stands_inside_the_page() {
        let charts = Charts::from([("charts/a.svg".into(), "<svg width=\"1\"></svg>".into())]);
        let out = body("![Cycles \"of\" a](charts/a.svg)\n", &charts);
        assert!(
            out.contains("<svg role=\"img\" aria-label=\"Cycles &quot;of&quot; a\" width=\"1\">"),
            "{out}"
        );
        assert!(!out.contains("<p>") && !out.contains("<img"));
        assert_eq!(out.matches("<svg").count(), 1);
    }
}
