//! `punctual export`: what it writes is read back by the programs that it is for.

mod formats;
pub(crate) mod made;
mod refused;
