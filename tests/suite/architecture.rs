//! Tests the order of the modules: each imports only modules below it in the table of `src/lib.rs`,
//! and no two files of the product import each other.
//!
//! An exception: a file may use what the files above it in its own folder declare, and they may use
//! what it declares. For example, `sweep/catalog.rs` and `sweep/catalog/begin.rs` are one module in
//! two files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::visit::{self, Visit};
use syn::{Item, ItemMod, UseTree};

/// A module of the crate: `["sweep", "catalog"]`; the crate itself is empty.
type Module = Vec<String>;

/// The modules that a file imports, as their paths are written.
struct Imports<'a> {
    here: Module,
    known: &'a BTreeMap<Module, PathBuf>,
    found: BTreeSet<Module>,
}

impl Imports<'_> {
    fn note(&mut self, path: &[String]) {
        let Some((first, rest)) = path.split_first() else { return };
        let mut from = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.here.clone(),
            "super" => self.here[..self.here.len().saturating_sub(1)].to_vec(),
            _ if self.known.contains_key(&[&self.here[..], &path[..1]].concat()) => {
                [&self.here[..], &path[..1]].concat()
            }
            _ => return,
        };
        for name in rest {
            match name.as_str() {
                "super" => drop(from.pop()),
                _ => from.push(name.clone()),
            }
        }
        while !self.known.contains_key(&from) && from.pop().is_some() {}
        self.found.insert(from);
    }

    fn note_tree(&mut self, before: &mut Module, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.note_tree(before, &path.tree);
                before.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.note_tree(before, tree));
            }
            UseTree::Name(name) => self.note(&[&before[..], &[name.ident.to_string()]].concat()),
            UseTree::Rename(name) => self.note(&[&before[..], &[name.ident.to_string()]].concat()),
            UseTree::Glob(_) => self.note(before),
        }
    }
}

impl<'ast> Visit<'ast> for Imports<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.note_tree(&mut Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let path_of: Module = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if path_of.len() > 1 {
            self.note(&path_of);
        }
        visit::visit_path(self, path);
    }

    /// Tests may use what they like.
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The files of the product by their modules, tests apart.
fn modules() -> Result<BTreeMap<Module, PathBuf>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![source()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let inside = path.strip_prefix(source())?.with_extension("");
            let mut module: Module =
                inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if module.last().is_some_and(|last| last == "mod") || module == ["lib"] {
                module.pop();
            }
            if module != ["main"] && !module.iter().any(|part| part == "tests") {
                found.insert(module, path);
            }
        }
    }
    Ok(found)
}

/// What each module imports of the others.
fn imports(known: &BTreeMap<Module, PathBuf>) -> Result<BTreeMap<Module, BTreeSet<Module>>> {
    let mut all = BTreeMap::new();
    for (module, path) in known {
        let file = syn::parse_file(&std::fs::read_to_string(path)?)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        let mut imports = Imports { here: module.clone(), known, found: BTreeSet::new() };
        for item in &file.items {
            // What a module declares it does not import.
            if !matches!(item, Item::Mod(declared) if declared.content.is_none()) {
                imports.visit_item(item);
            }
        }
        imports.found.remove(module);
        imports.found.remove(&Module::new());
        all.insert(module.clone(), imports.found);
    }
    Ok(all)
}

/// The modules in the order of the table in `src/lib.rs`.
fn order() -> Result<Vec<String>> {
    let text = std::fs::read_to_string(source().join("lib.rs"))?;
    let names = text.lines().filter_map(|line| line.strip_prefix("//! | [`"));
    let names = names.filter_map(|line| line.split('`').next());
    Ok(names.map(|name| name.trim_start_matches("mod@").to_owned()).collect())
}

#[test]
fn the_table_of_modules_has_each_of_them() -> Result<()> {
    let known = modules()?;
    let there: BTreeSet<&String> = known.keys().filter_map(|module| module.first()).collect();
    let order = order()?;
    assert_eq!(order.iter().collect::<BTreeSet<_>>(), there);
    assert_eq!(order.len(), there.len());
    Ok(())
}

#[test]
fn a_module_imports_only_what_stands_after_it() -> Result<()> {
    let order = order()?;
    let place = |module: &Module| order.iter().position(|name| Some(name) == module.first());
    let mut wrong = Vec::new();
    for (module, imported) in imports(&modules()?)? {
        for other in imported {
            if module.first() != other.first() && place(&module) >= place(&other) {
                wrong.push(format!("{} imports {}", module.join("::"), other.join("::")));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    Ok(())
}

#[test]
fn no_two_files_import_each_other() -> Result<()> {
    let mut imports = imports(&modules()?)?;
    for (module, imported) in &mut imports {
        imported.retain(|other| !module.starts_with(other));
    }
    // Who imports nothing that is left is in no circle.
    while let Some(free) = imports.iter().find(|(_, imported)| imported.is_empty()) {
        let free = free.0.clone();
        imports.remove(&free);
        for imported in imports.values_mut() {
            imported.remove(&free);
        }
    }
    // Nor is one whom nobody imports.
    while let Some(free) = imports
        .keys()
        .find(|module| !imports.values().any(|imported| imported.contains(*module)))
        .cloned()
    {
        imports.remove(&free);
    }
    let circles: Vec<String> = imports
        .iter()
        .map(|(module, imported)| {
            let imported: Vec<String> = imported.iter().map(|other| other.join("::")).collect();
            format!("{} imports {}", module.join("::"), imported.join(", "))
        })
        .collect();
    assert_eq!(circles, Vec::<String>::new());
    Ok(())
}
