//! Parameters of modules on the command line, `module.name=value`, and what the module shows.
//! The kernel never reports one that does not exist: it may belong to a module loaded later.

use crate::fact::Fact;
use crate::facts::source::Source;
use crate::root::Listing;

/// The most of them that are looked at.
const MAX: usize = 200;

/// One parameter with a dot in its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleParameter {
    /// As typed: `rcutree.kthread_prio`.
    pub name: String,
    /// Known where the module is there; unreadable where that was not captured.
    pub module: Fact<bool>,
    /// What the module shows.
    pub shown: Fact<String>,
}

pub(super) fn read(source: &Source<'_>) -> Vec<ModuleParameter> {
    let params = source.command_line.value().map(|line| line.params.as_slice()).unwrap_or_default();
    let dotted = params.iter().filter_map(|param| param.name.split_once('.')).take(MAX);
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    dotted
        .filter(|(module, name)| plain(module) && plain(name) && !module.is_empty())
        .map(|(module, name)| {
            let at = format!("/sys/module/{}", module.replace('-', "_"));
            let there = match source.root.list(&at) {
                Listing::Names(_) => Fact::known(true, at.clone()),
                Listing::Absent => Fact::absent(at.clone()),
                Listing::Unreadable { why } => Fact::unreadable(at.clone(), why),
            };
            ModuleParameter {
                name: format!("{module}.{name}"),
                module: there,
                shown: source.text(&format!("{at}/parameters/{}", name.replace('-', "_"))),
            }
        })
        .collect()
}
