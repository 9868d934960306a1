//! A campaign as bytes: a header with a checksum, then JSON.
//!
//! A file is read back whole and checked, or refused with the reason. Two such files are written in
//! turn; the number in the header says which is newer.

use super::Campaign;

/// How a state file begins.
pub const MAGIC: [u8; 8] = *b"PCAMPAGN";
/// The version of the layout.
pub const VERSION: u32 = 2;
/// Bytes of the header: magic, version, length of the JSON, number, checksum of all of it.
pub const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 4;

/// The most bytes of a file: [`super::TOTALS_MAX`] totals of at most [`TOTAL_BYTES_MAX`] each, and
/// the lists.
pub const FILE_BYTES_MAX: usize = (super::TOTALS_MAX + 1) * TOTAL_BYTES_MAX;
/// The most bytes that one run of one setup takes, every bucket full; with one mode, of the order
/// of ten thousand.
pub const TOTAL_BYTES_MAX: usize = 3 << 20;

/// Why bytes are not a campaign.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CampaignFileError {
    /// They do not begin with the magic.
    #[error("not a punctual campaign file")]
    Foreign,
    /// They have another version.
    #[error("campaign file version {0} is not supported: this punctual reads version {VERSION}")]
    Version(u32),
    /// There are fewer or more bytes than the header states.
    #[error("wrong length: {there} bytes, expected {needed}")]
    Torn {
        /// Bytes needed.
        needed: usize,
        /// Bytes there.
        there: usize,
    },
    /// The checksum does not match.
    #[error("damaged: the checksum does not match")]
    Checksum,
    /// The JSON is not that of a campaign.
    #[error("damaged: {0}")]
    Json(String),
    /// The numbers contradict each other or exceed the limits of a campaign.
    #[error("damaged: its numbers contradict each other or are out of range")]
    Numbers,
}

impl Campaign {
    /// The bytes of a state file; `number` rises with each. Texts that are too long are cut, so
    /// that what is written can be read again.
    pub fn to_bytes(&self, number: u64) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        // A struct of numbers, texts and lists can always be written as JSON.
        let written = match self.has_fit_texts() {
            true => serde_json::to_writer(&mut bytes, self),
            false => serde_json::to_writer(&mut bytes, &self.fitted()),
        };
        if written.is_err() {
            bytes.truncate(HEADER_BYTES);
        }
        let length = u32::try_from(bytes.len() - HEADER_BYTES).unwrap_or(0);
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&length.to_le_bytes());
        bytes[16..24].copy_from_slice(&number.to_le_bytes());
        let crc = checksum(&bytes);
        bytes[24..28].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// A campaign from the bytes of a state file, and its number.
    ///
    /// # Errors
    /// In one line, why the bytes are not a campaign.
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, u64), CampaignFileError> {
        let magic = &bytes[..bytes.len().min(MAGIC.len())];
        if magic.is_empty() || !MAGIC.starts_with(magic) {
            return Err(CampaignFileError::Foreign);
        }
        let torn = |needed| CampaignFileError::Torn { needed, there: bytes.len() };
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or_else(|| torn(HEADER_BYTES))?;
        let word = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&header[at..at + 4]);
            u32::from_le_bytes(word)
        };
        if word(8) != VERSION {
            return Err(CampaignFileError::Version(word(8)));
        }
        let needed = HEADER_BYTES.saturating_add(word(12) as usize);
        if bytes.len() != needed {
            return Err(torn(needed));
        }
        if checksum(bytes) != word(24) {
            return Err(CampaignFileError::Checksum);
        }
        let json = serde_json::from_slice(&bytes[HEADER_BYTES..]);
        let campaign: Self = json.map_err(|why| CampaignFileError::Json(one_line(&why)))?;
        if !campaign.is_sound() {
            return Err(CampaignFileError::Numbers);
        }
        Ok((campaign, u64::from(word(16)) | u64::from(word(20)) << 32))
    }
}

/// The checksum of all bytes except itself.
fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..HEADER_BYTES - 4]);
    hasher.update(&bytes[HEADER_BYTES..]);
    hasher.finalize()
}

fn one_line(why: &serde_json::Error) -> String {
    why.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}
