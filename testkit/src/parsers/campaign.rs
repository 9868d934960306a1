//! The body for state files of campaigns.

use punctual_analysis::campaign::Campaign;
use punctual_analysis::campaign::file::{CampaignFileError, HEADER_BYTES, MAGIC, VERSION};

use super::one_line;

/// Reads the bytes as they are, then as the JSON behind a header that fits, so that what lies
/// behind the checksum is reached too. What is taken comes back the same, can be summed up, and is
/// refused once a bit is wrong.
pub(super) fn campaign(data: &[u8]) {
    if let Err(why) = Campaign::from_bytes(data) {
        one_line(&why);
    }
    let json = data.strip_prefix(&MAGIC[..]).and_then(|_| data.get(HEADER_BYTES..)).unwrap_or(data);
    let mended = with_header(json);
    let campaign = match Campaign::from_bytes(&mended) {
        Ok((campaign, number)) => {
            assert_eq!(number, 7);
            campaign
        }
        Err(why) => {
            assert!(
                matches!(why, CampaignFileError::Json(_) | CampaignFileError::Numbers),
                "mended: {why}"
            );
            one_line(&why);
            return;
        }
    };
    let mut bytes = campaign.to_bytes(8);
    let read = Campaign::from_bytes(&bytes).expect("what was written is read");
    assert_eq!(read, (campaign.clone(), 8));
    for total in campaign.pools().iter().flat_map(|pool| pool.totals()) {
        let outcome = total.outcome();
        assert_eq!(outcome.cycles, total.cycles());
    }
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert_eq!(Campaign::from_bytes(&bytes), Err(CampaignFileError::Checksum));
}

fn with_header(json: &[u8]) -> Vec<u8> {
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::from(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(7u64.to_le_bytes());
    let crc = super::recorded::crc32(&[&bytes[..], json].concat());
    bytes.extend(crc.to_le_bytes());
    bytes.extend(json);
    bytes
}
