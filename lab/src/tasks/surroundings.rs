//! What a `[[task]]` says of user, group, environment, capabilities, directory and umask.
//!
//! Pure: names are looked up by the supervisor.

use std::ops::Range;

use punctual::process::Surroundings;

use super::error::TaskFileError;
use super::keys::Keys;
use super::text::Text;

/// What the task runs as and in, and where its first such key stands.
pub(super) fn of(
    text: &Text<'_>,
    keys: &mut Keys<'_, '_>,
) -> Result<(Surroundings, Option<Range<usize>>), TaskFileError> {
    let mut places = Vec::new();
    let mut word = |keys: &mut Keys<'_, '_>, key: &str| {
        let Some(word) = keys.word(key)? else { return Ok(None) };
        places.push(word.span());
        if word.get_ref().is_empty() || word.get_ref().contains('\0') {
            return Err(text.at(&word, &format!("{key} is empty or contains a zero byte")));
        }
        Ok(Some(word))
    };
    let user = word(keys, "user")?;
    let group = word(keys, "group")?;
    let directory = word(keys, "directory")?;
    let umask = word(keys, "umask")?;
    let mode = |digits: &str| u32::from_str_radix(digits, 8).ok().filter(|&mode| mode <= 0o777);
    let umask = umask.map(|word| {
        mode(word.get_ref())
            .ok_or_else(|| text.at(&word, "umask must be at most \"0777\", in octal digits"))
    });
    let capabilities = keys.words("capabilities")?;
    places.extend(capabilities.iter().map(toml::Spanned::span));
    let env = keys.variables("env")?;
    for (name, value) in env.iter().flatten() {
        places.push(name.span());
        let name_is_one = !name.get_ref().is_empty() && !name.get_ref().contains(['=', '\0']);
        if !name_is_one || value.contains('\0') {
            return Err(text.at(name, "env: a name is empty or contains '=', or a zero byte"));
        }
    }
    let surroundings = Surroundings {
        user: user.map(toml::Spanned::into_inner),
        group: group.map(toml::Spanned::into_inner),
        env: env.map(|all| {
            let variable = |(name, value): (super::keys::Word, String)| {
                (name.into_inner().into(), value.into())
            };
            all.into_iter().map(variable).collect()
        }),
        capabilities: capabilities.map(toml::Spanned::into_inner),
        directory: directory.map(|word| word.into_inner().into()),
        umask: umask.transpose()?,
    };
    places.sort_by_key(|place| place.start);
    Ok((surroundings, places.into_iter().next()))
}
