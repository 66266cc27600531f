//! `[[candidate]]`: who it is, how its KAT is made, what is wrapped.

use super::{bare, code, flags, title, CodeText, InstanceText};
use crate::config::model::KeyPer;
use crate::config::reader::{Located, Section};
use crate::config::words;
use crate::evidence::{KatResult, Origin};
use protocol::KatFlow;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::DeValue;

/// `[[candidate]]`.
#[derive(Debug)]
pub struct CandidateText {
    /// The header.
    pub span: Range<usize>,
    /// Id.
    pub id: Option<Located<String>>,
    /// Name.
    pub name: Option<String>,
    /// Category.
    pub category: Option<String>,
    /// Function.
    pub function: Option<String>,
    /// Whose code.
    pub origin: Option<Origin>,
    /// Where it is specified.
    pub specification: Option<String>,
    /// For pages.
    pub links: BTreeMap<String, String>,
    /// Manifest of crates.
    pub source_crates: Option<Located<String>>,
    /// KAT flow.
    pub kat_flow: Option<KatFlow>,
    /// KAT manifest.
    pub kat_manifest: Option<Located<String>>,
    /// What is wrapped.
    pub wrap: WrapText,
    /// Deviations.
    pub kat_issues: Vec<KatIssueText>,
    /// What instances have unless they say otherwise.
    pub defaults: InstanceDefaults,
    /// Flags where the guide's fail, for all codes.
    pub fallback_cflags: Option<Vec<String>>,
    /// Codes of every instance.
    pub codes: Vec<CodeText>,
    /// Parameter sets.
    pub instances: Vec<InstanceText>,
}

/// Keys that a candidate may give for all of its instances, and an instance for itself.
#[derive(Debug, Default)]
pub struct InstanceDefaults {
    /// How often a key is made.
    pub key_per: Option<KeyPer>,
    /// Symbol.
    pub rejected_counter: Option<String>,
}

/// What the profile phase wraps.
#[derive(Debug, Default)]
pub struct WrapText {
    /// Named functions with their group.
    pub named: Vec<(&'static str, Located<String>)>,
    /// Functions with their prototype.
    pub functions: Vec<WrapFunctionText>,
    /// Table of prototypes.
    pub derive: Option<Located<String>>,
}

/// `[[candidate.wrap.function]]`.
#[derive(Debug)]
pub struct WrapFunctionText {
    /// Symbol.
    pub symbol: Option<Located<String>>,
    /// Group.
    pub group: Option<&'static str>,
    /// Reported name.
    pub name: Option<String>,
    /// C prototype.
    pub prototype: Option<Located<String>>,
    /// C expression.
    pub in_bits: Option<Located<String>>,
    /// C expression.
    pub out_bits: Option<Located<String>>,
}

/// `[[candidate.kat_issue]]`.
#[derive(Debug)]
pub struct KatIssueText {
    /// Label.
    pub instance: Option<Located<String>>,
    /// Result that is allowed.
    pub result: Option<KatResult>,
    /// Why.
    pub reason: Option<String>,
}

pub(super) fn candidate(mut s: Section<'_>) -> CandidateText {
    let id = s.required_text("id", r#"id = "sign-09""#);
    title(&mut s, "candidate", id.as_ref());
    let (kat_flow, kat_manifest) = kat(&mut s);
    let wrap = s.section(
        "wrap",
        "`wrap`",
        r#"wrap = { hash = ["pseudoXOF"], drng = ["get_random_number"] }"#,
    );
    let issues = s.sections(
        "kat_issue",
        "[[candidate.kat_issue]]",
        "[[candidate.kat_issue]]",
    );
    let codes = s.sections("code", "[[candidate.code]]", "[[candidate.code]]");
    let instances = s.sections(
        "instance",
        "[[candidate.instance]]",
        "[[candidate.instance]]",
    );
    if !s.has("instance") {
        s.missing("instance", "[[candidate.instance]] with a label");
    }
    let text = CandidateText {
        span: s.span.clone(),
        id,
        name: bare(s.required_text("name", r#"name = "DOVE""#)),
        category: bare(s.text("category", r#"category = "public-key algorithm""#)),
        function: bare(s.text("function", r#"function = "digital signature""#)),
        origin: origin(&mut s),
        specification: bare(s.text("specification", r#"specification = "DOVE, NGCC Round 1""#)),
        links: links(&mut s),
        source_crates: s.text(
            "source_crates",
            r#"source_crates = "drivers/dilithium/sources/Cargo.toml""#,
        ),
        kat_flow,
        kat_manifest,
        wrap: wrap.map(self::wrap).unwrap_or_default(),
        kat_issues: issues.into_iter().map(kat_issue).collect(),
        defaults: instance_defaults(&mut s),
        fallback_cflags: flags(&mut s, "fallback_cflags"),
        codes: codes.into_iter().map(code::code).collect(),
        instances: instances.into_iter().map(code::instance).collect(),
    };
    s.finish();
    text
}

fn origin(s: &mut Section<'_>) -> Option<Origin> {
    if !s.has("origin") {
        s.missing(
            "origin",
            r#"origin = "submission" (the submitters' own source), "upstream" (a maintained library) or "independent" (our own implementation)"#,
        );
    }
    let origins = [Origin::Submission, Origin::Upstream, Origin::Independent];
    s.choice("origin", &["submission", "upstream", "independent"])
        .map(|index| origins[index.into_inner()])
}

fn kat(s: &mut Section<'_>) -> (Option<KatFlow>, Option<Located<String>>) {
    const EXAMPLE: &str = r#"kat = { flow = "iccs", manifest = "performance/kat/sign-09.sha256" }"#;
    if !s.has("kat") {
        s.missing("kat", EXAMPLE);
    }
    let Some(mut kat) = s.section("kat", &format!("`kat` of {}", s.title), EXAMPLE) else {
        return (None, None);
    };
    if !kat.has("flow") {
        kat.missing("flow", EXAMPLE);
    }
    let flow = kat
        .choice("flow", &["iccs", "nist"])
        .map(|index| [KatFlow::Iccs, KatFlow::Nist][index.into_inner()]);
    let manifest = kat.required_text("manifest", EXAMPLE);
    kat.finish();
    (flow, manifest)
}

fn links(s: &mut Section<'_>) -> BTreeMap<String, String> {
    const EXAMPLE: &str = r#"links = { submission = "https://www.niccs.org.cn/" }"#;
    let Some(mut table) = s.section("links", "`links`", EXAMPLE) else {
        return BTreeMap::new();
    };
    let mut links = BTreeMap::new();
    for (name, value) in table.entries() {
        match value.get_ref() {
            DeValue::String(address)
                if address.starts_with("https://") || address.starts_with("http://") =>
            {
                links.insert(name.into_inner(), address.clone().into_owned());
            }
            _ => table.report(
                value.span(),
                format!("the link `{}` is no web address", name.get_ref()),
                EXAMPLE,
            ),
        }
    }
    links
}

const GROUPS: [&str; 3] = ["hash", "drng", "other"];

fn wrap(mut s: Section<'_>) -> WrapText {
    let mut text = WrapText::default();
    for group in GROUPS {
        let names = s.list(group, &format!(r#"{group} = ["pseudoXOF"]"#));
        for name in names.into_iter().flat_map(Located::into_inner) {
            text.named.push((group, name));
        }
    }
    let functions = s.sections("function", "`wrap.function`", "[[candidate.wrap.function]]");
    text.functions = functions.into_iter().map(wrap_function).collect();
    text.derive = s.text("derive", r#"derive = "drivers/dilithium/wrappable.toml""#);
    if let (Some(derive), false) = (
        &text.derive,
        text.named.is_empty() && text.functions.is_empty(),
    ) {
        s.report(
            derive.span(),
            "`wrap` has both `derive` and functions of its own",
            "either `derive`, or any of `hash`, `drng`, `other`, `function`",
        );
    }
    s.finish();
    text
}

fn wrap_function(mut s: Section<'_>) -> WrapFunctionText {
    let symbol = s.required_text("symbol", r#"symbol = "lattice_hash""#);
    if !s.has("group") {
        s.missing("group", r#"group = "hash""#);
    }
    let text = WrapFunctionText {
        symbol,
        group: s.choice("group", &GROUPS).map(|index| GROUPS[index.into_inner()]),
        name: bare(s.text("name", r#"name = "lattice_hash""#)),
        prototype: s.required_text(
            "prototype",
            r#"prototype = "int lattice_hash(unsigned char *out, const unsigned char *in, size_t n)""#,
        ),
        in_bits: s.required_text("in_bits", r#"in_bits = "8ULL * n""#),
        out_bits: s.required_text("out_bits", r#"out_bits = "256""#),
    };
    s.finish();
    text
}

fn kat_issue(mut s: Section<'_>) -> KatIssueText {
    use KatResult::*;
    // PASS needs no excuse, and a library that cannot be loaded or crashes cannot be timed.
    let allowed = [Mismatch, Nokat, Partial, Cryptofail];
    if !s.has("result") {
        s.missing("result", r#"result = "NOKAT""#);
    }
    let text = KatIssueText {
        instance: s.required_text("instance", r#"instance = "some_label""#),
        result: s
            .choice("result", &allowed.map(KatResult::word))
            .map(|index| allowed[index.into_inner()]),
        reason: bare(s.required_text(
            "reason",
            r#"reason = "the submission has no vectors for this parameter set""#,
        )),
    };
    s.finish();
    text
}

pub(super) fn instance_defaults(s: &mut Section<'_>) -> InstanceDefaults {
    const COUNTER: &str = r#"rejected_counter = "dove_rejected_draws""#;
    let key_per = s
        .choice("key_per", &["trial", "run"])
        .map(|index| [KeyPer::Trial, KeyPer::Run][index.into_inner()]);
    let counter = s.text("rejected_counter", COUNTER).filter(|counter| {
        let good = words::is_c_name(counter.get_ref());
        if !good {
            s.report(
                counter.span(),
                "`rejected_counter` is no name of C",
                COUNTER,
            );
        }
        good
    });
    InstanceDefaults {
        key_per,
        rejected_counter: bare(counter),
    }
}
