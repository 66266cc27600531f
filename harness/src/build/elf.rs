//! What an ELF file says of itself: symbols of objects, static memory of libraries.
//!
//! `load_bytes` is the sum of `p_memsz` over the PT_LOAD segments. It does not depend on the page
//! alignment that the linker was told: `p_memsz` reaches from a segment's first section to the end of
//! its last, alignment decides where segments *start*, and the gap between two of them belongs to
//! neither. What is inside a segment keeps its place modulo the smallest page (4 KiB), since the
//! larger alignments are multiples of it. A test links the same objects with 4 KiB, 64 KiB and 2 MiB.
//!
//! `text`, `rodata`, `data` and `bss` are sums of section sizes, `headers_and_tables` is what remains
//! of `load_bytes`: headers, dynamic tables, relocations, unwind tables, and the few bytes between
//! sections. The five add up to the total.

use crate::evidence::ElfFigures;
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, Sym};
use object::Endianness;
use std::collections::BTreeSet;

/// The file is not a readable 64-bit ELF file.
#[derive(Debug, thiserror::Error)]
#[error("not a readable 64-bit ELF file")]
pub struct ElfError(#[from] object::Error);

/// Global symbols of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Symbols {
    /// Defined here and visible to other objects.
    pub defined: BTreeSet<String>,
    /// Needed from elsewhere.
    pub undefined: BTreeSet<String>,
}

/// Reads the global symbols of an object.
pub fn symbols(data: &[u8]) -> Result<Symbols, ElfError> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let table = sections.symbols(endian, data, elf::SHT_SYMTAB)?;
    let mut symbols = Symbols::default();
    for symbol in table.iter() {
        let name = String::from_utf8_lossy(symbol.name(endian, table.strings())?).into_owned();
        if name.is_empty() || symbol.st_bind() == elf::STB_LOCAL {
            continue;
        }
        match symbol.is_undefined(endian) {
            true => symbols.undefined.insert(name),
            false => symbols.defined.insert(name),
        };
    }
    Ok(symbols)
}

/// Names that a library exports.
pub fn exports(data: &[u8]) -> Result<BTreeSet<String>, ElfError> {
    use object::{Object, ObjectSymbol};
    let file = object::File::parse(data)?;
    let defined = file.dynamic_symbols().filter(|s| s.is_definition());
    defined
        .map(|symbol| Ok(symbol.name()?.to_owned()))
        .collect()
}

/// The machine that a file is for: the word of the configuration where it is one of ours, else the
/// number of the ELF header.
pub fn machine(data: &[u8]) -> Result<String, ElfError> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    Ok(match header.e_machine(header.endian()?) {
        elf::EM_X86_64 => "x86_64".to_owned(),
        elf::EM_AARCH64 => "aarch64".to_owned(),
        other => format!("ELF machine {}", other.0),
    })
}

/// Where a section's bytes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Text,
    Rodata,
    Data,
    Bss,
    Other,
}

/// Decides by flags, and by name where flags do not tell data from tables.
fn part(name: &[u8], section_type: elf::SectionType, flags: u64) -> Part {
    let has = |flag: elf::SectionFlags| flags & flag.0 != 0;
    if !has(elf::SHF_ALLOC) {
        return Part::Other;
    }
    if has(elf::SHF_EXECINSTR) {
        return Part::Text;
    }
    match (has(elf::SHF_WRITE), section_type) {
        // Zero-initialised thread-local data takes no place in the image: each thread gets its own.
        (_, elf::SHT_NOBITS) if has(elf::SHF_TLS) => Part::Other,
        (true, elf::SHT_NOBITS) => Part::Bss,
        (true, elf::SHT_PROGBITS) if !name.starts_with(b".got") => Part::Data,
        (false, elf::SHT_PROGBITS) if name.starts_with(b".rodata") => Part::Rodata,
        _ => Part::Other,
    }
}

/// Static memory of a library.
pub fn figures(data: &[u8]) -> Result<ElfFigures, ElfError> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let load_bytes = header
        .program_headers(endian, data)?
        .iter()
        .filter(|segment| segment.p_type(endian) == elf::PT_LOAD)
        .map(|segment| segment.p_memsz(endian))
        .sum();
    let sections = header.sections(endian, data)?;
    let mut sums = [0u64; 5];
    for section in sections.iter() {
        let name = sections.section_name(endian, section)?;
        let kind = part(name, section.sh_type(endian), section.sh_flags(endian).0);
        sums[kind as usize] += section.sh_size(endian);
    }
    let mut needed = Vec::new();
    if let Some((dynamics, link)) = sections.dynamic(endian, data)? {
        let strings = sections.strings(endian, data, link)?;
        for entry in dynamics
            .iter()
            .filter(|d| d.d_tag(endian) == elf::DT_NEEDED)
        {
            let offset = u32::try_from(entry.d_val(endian)).unwrap_or(u32::MAX);
            let name = strings.get(offset).unwrap_or(b"?");
            needed.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    let [text, rodata, data, bss, _] = sums;
    Ok(ElfFigures {
        text: Some(text),
        rodata: Some(rodata),
        data: Some(data),
        bss: Some(bss),
        headers_and_tables: Some(u64::saturating_sub(load_bytes, text + rodata + data + bss)),
        load_bytes,
        needed: Some(needed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_counted_where_they_belong() {
        let (a, w, x, t) = (
            elf::SHF_ALLOC.0,
            elf::SHF_WRITE.0,
            elf::SHF_EXECINSTR.0,
            elf::SHF_TLS.0,
        );
        let table: &[(&str, elf::SectionType, u64, Part)] = &[
            (".text", elf::SHT_PROGBITS, a | x, Part::Text),
            (".plt", elf::SHT_PROGBITS, a | x, Part::Text),
            (".rodata.cst16", elf::SHT_PROGBITS, a, Part::Rodata),
            (".eh_frame", elf::SHT_PROGBITS, a, Part::Other),
            (".rela.dyn", elf::SHT_RELA, a, Part::Other),
            (".data.rel.ro", elf::SHT_PROGBITS, a | w, Part::Data),
            (".got.plt", elf::SHT_PROGBITS, a | w, Part::Other),
            (".init_array", elf::SHT_INIT_ARRAY, a | w, Part::Other),
            (".bss", elf::SHT_NOBITS, a | w, Part::Bss),
            (".tbss", elf::SHT_NOBITS, a | w | t, Part::Other),
            (".tdata", elf::SHT_PROGBITS, a | w | t, Part::Data),
            (".comment", elf::SHT_PROGBITS, 0, Part::Other),
        ];
        for (name, section_type, flags, expected) in table {
            assert_eq!(
                part(name.as_bytes(), *section_type, *flags),
                *expected,
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_no_elf_file_is_refused() {
        assert!(figures(b"text").is_err());
        assert!(symbols(b"").is_err());
        assert!(machine(b"\x7fELF").is_err());
    }

    #[test]
    fn this_program_is_for_this_machine() {
        let me = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(machine(&me).unwrap(), std::env::consts::ARCH);
        let figures = figures(&me).unwrap();
        let parts = [
            figures.text,
            figures.rodata,
            figures.data,
            figures.bss,
            figures.headers_and_tables,
        ];
        let sum: u64 = parts.iter().map(|part| part.unwrap()).sum();
        assert_eq!(sum, figures.load_bytes);
        let needed = figures.needed.unwrap();
        assert!(parts[0] > Some(0) && needed.iter().any(|n| n.starts_with("libc.so")));
    }
}
