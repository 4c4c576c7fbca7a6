//! The list of migrations and the judgement of receipts, without a database.

use super::ledger::Receipt;
use super::{Reason, Source, SourceFile, verify};

fn three() -> Vec<SourceFile> {
    vec![
        SourceFile::new(1, "first_create", "select 1"),
        SourceFile::new(2, "second_create", "select 2"),
        SourceFile::new(3, "third_create", "select 3"),
    ]
}

fn receipts(files: &[SourceFile]) -> Vec<Receipt> {
    files
        .iter()
        .map(|file| Receipt {
            version: file.version(),
            name: file.name.clone(),
            success: true,
            checksum: file.migration.checksum.to_vec(),
        })
        .collect()
}

fn reason(receipts: &[Receipt]) -> Option<Reason> {
    verify::receipts(&Source::of(three()), receipts).err().and_then(|error| error.reason())
}

#[test]
fn the_embedded_files_are_those_of_the_manifest() {
    Source::embedded().verify().unwrap();
    assert_eq!(super::expected_version(), Source::embedded().files().last().unwrap().version());
}

#[test]
fn a_manifest_that_names_other_files_is_refused() {
    let mut shorter = Source::of(three());
    shorter.files.pop();
    assert_eq!(shorter.verify().unwrap_err().reason(), Some(Reason::SourceSetDiffers));
    let mut renamed = Source::of(three());
    renamed.files[1].name = "second_drop".to_owned();
    assert_eq!(renamed.verify().unwrap_err().reason(), Some(Reason::SourceSetDiffers));
    let mut swapped = three();
    swapped.swap(0, 1);
    assert_eq!(Source::of(swapped).verify().unwrap_err().reason(), Some(Reason::SourceSetDiffers));
    assert_eq!(Source::of(Vec::new()).verify().unwrap_err().reason(), Some(Reason::SourceSetDiffers));
}

#[test]
fn a_changed_file_is_refused() {
    let mut changed = Source::of(three());
    changed.files[2] = SourceFile::new(3, "third_create", "select 4");
    assert_eq!(changed.verify().unwrap_err().reason(), Some(Reason::SourceBytesDiffer));
}

#[test]
fn every_prefix_is_accepted() {
    for count in 0..=3 {
        assert_eq!(reason(&receipts(&three()[..count])), None);
    }
}

#[test]
fn receipts_that_are_no_prefix_are_refused() {
    let mut missing = receipts(&three());
    missing.remove(1);
    assert_eq!(reason(&missing), Some(Reason::ReceiptsNotAPrefix));

    let mut unknown = receipts(&three());
    unknown[2].version = 2_000;
    unknown[1].version = 1_000;
    assert_eq!(reason(&unknown), Some(Reason::ReceiptsNotAPrefix));

    let mut between = receipts(&three());
    between[0].version = 0;
    assert_eq!(reason(&between), Some(Reason::ReceiptsNotAPrefix));
}

#[test]
fn other_names_bytes_and_results_are_refused() {
    let mut renamed = receipts(&three());
    renamed[0].name = "first_drop".to_owned();
    assert_eq!(reason(&renamed), Some(Reason::ReceiptsDiffer));

    let mut changed = receipts(&three());
    changed[1].checksum[0] ^= 1;
    assert_eq!(reason(&changed), Some(Reason::ReceiptsDiffer));

    let mut unfinished = receipts(&three());
    unfinished[2].success = false;
    assert_eq!(reason(&unfinished), Some(Reason::ReceiptUnfinished));
}

#[test]
fn a_newer_history_is_named_as_such() {
    let mut newer = receipts(&three());
    newer.push(Receipt { version: 4, name: "fourth_create".to_owned(), success: true, checksum: Vec::new() });
    assert_eq!(reason(&newer), Some(Reason::HistoryNewerThanBinary));
}
