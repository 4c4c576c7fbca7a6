//! What a process prints: two files that it appends to by itself.
//!
//! Never a pipe: its reader would be this host, and a host that dies would end the
//! process with it. So nobody stands between the process and its file, and the bounds
//! are kept from outside:
//!
//! - At a start, a file over [`OUTPUT_BYTES_MAX`] becomes `output.previous.log`.
//! - While the process runs, a file over [`OUTPUT_FLOOD_BYTES`] is cut: its last
//!   [`OUTPUT_BYTES_MAX`] bytes are copied to `output.previous.log`, then it is emptied.
//!   The process appends, so it goes on at the new end; what it printed between copy and
//!   cut is lost.
//! - A reader looks at the last [`LOG_READ_BYTES_MAX`] bytes only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use nix::libc::O_NOFOLLOW;

use super::types::LogLine;

/// Size at which the output is rotated when the process starts.
pub(super) const OUTPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Size at which the output of a running process is cut.
pub(super) const OUTPUT_FLOOD_BYTES: u64 = 4 * OUTPUT_BYTES_MAX;
/// Most bytes that one log request looks at.
const LOG_READ_BYTES_MAX: u64 = 1024 * 1024;
/// Most lines that one log request gets.
const LOG_LINES_MAX: u32 = 10_000;
/// Longest line that is handed out, in bytes.
const LOG_LINE_BYTES_MAX: usize = 16 * 1024;

/// The two ends of the process's output, both appending to one file.
pub(super) fn open(current: &Path, previous: &Path) -> io::Result<(File, File)> {
    if fs::symlink_metadata(current).is_ok_and(|meta| meta.len() > OUTPUT_BYTES_MAX) {
        fs::rename(current, previous)?;
    }
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).custom_flags(O_NOFOLLOW).open(current)?;
    let second = file.try_clone()?;
    Ok((file, second))
}

/// Cuts the output of a running process when it is over `flood_bytes`.
pub(super) fn cut_flood(current: &Path, previous: &Path, flood_bytes: u64) -> io::Result<bool> {
    let Ok(meta) = fs::symlink_metadata(current) else {
        return Ok(false);
    };
    if meta.len() <= flood_bytes {
        return Ok(false);
    }
    let mut options = OpenOptions::new();
    let mut source = options.read(true).write(true).custom_flags(O_NOFOLLOW).open(current)?;
    source.seek(SeekFrom::Start(meta.len().saturating_sub(OUTPUT_BYTES_MAX)))?;
    match fs::remove_file(previous) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(previous)?;
    io::copy(&mut Read::by_ref(&mut source).take(OUTPUT_BYTES_MAX), &mut target)?;
    source.set_len(0)?;
    Ok(true)
}

/// The last `lines` lines of a file that may not be there. With `since`, nothing when
/// the file has not grown for longer than that; lines carry no time of their own.
pub(super) fn tail(path: &Path, lines: u32, since: Option<Duration>) -> io::Result<Vec<LogLine>> {
    let file = match OpenOptions::new().read(true).custom_flags(O_NOFOLLOW).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let meta = file.metadata()?;
    if let Some(since) = since
        && meta.modified()?.elapsed().is_ok_and(|age| age > since)
    {
        return Ok(Vec::new());
    }
    let bytes = read_end(file, meta.len())?;
    Ok(last_lines(&bytes, meta.len() > LOG_READ_BYTES_MAX, lines.min(LOG_LINES_MAX)))
}

fn read_end(mut file: File, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_READ_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(LOG_READ_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// `cut`: the first line may have lost its beginning and is left out.
fn last_lines(bytes: &[u8], cut: bool, lines: u32) -> Vec<LogLine> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    let all: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').skip(usize::from(cut)).collect();
    let wanted = usize::try_from(lines).unwrap_or(usize::MAX);
    let skipped = all.len().saturating_sub(wanted);
    all.into_iter().skip(skipped).map(line).collect()
}

fn line(bytes: &[u8]) -> LogLine {
    let bytes = bytes.get(..LOG_LINE_BYTES_MAX).unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes).trim_end_matches('\r').to_owned();
    LogLine { time_ms: None, error_stream: false, text }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn texts(lines: Vec<LogLine>) -> Vec<String> {
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn the_last_lines_come_in_order() {
        assert_eq!(texts(last_lines(b"a\nb\r\nc\n", false, 2)), ["b", "c"]);
        assert_eq!(texts(last_lines(b"a\nb", false, 9)), ["a", "b"]);
        assert_eq!(texts(last_lines(b"", false, 9)), Vec::<String>::new());
    }

    #[test]
    fn a_line_that_lost_its_beginning_is_left_out() {
        assert_eq!(texts(last_lines(b"tail of a\nb\n", true, 9)), ["b"]);
    }

    #[test]
    fn long_lines_are_cut() {
        let long = vec![b'x'; LOG_LINE_BYTES_MAX + 5];
        assert_eq!(texts(last_lines(&long, false, 1)), ["x".repeat(LOG_LINE_BYTES_MAX)]);
    }

    #[test]
    fn a_flood_is_cut_and_its_writer_goes_on_at_the_new_end() {
        let folder = tempfile::tempdir().unwrap();
        let (current, previous) =
            (folder.path().join("output.log"), folder.path().join("output.previous.log"));
        let (mut writer, _second) = open(&current, &previous).unwrap();
        writer.write_all(b"one\ntwo\n").unwrap();
        assert!(!cut_flood(&current, &previous, 8).unwrap());
        writer.write_all(b"three\n").unwrap();
        assert!(cut_flood(&current, &previous, 8).unwrap());
        writer.write_all(b"four\n").unwrap();
        assert_eq!(fs::read_to_string(&current).unwrap(), "four\n");
        assert_eq!(fs::read_to_string(&previous).unwrap(), "one\ntwo\nthree\n");
    }

    #[test]
    fn a_link_in_place_of_the_output_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (secret, link) = (folder.path().join("secret"), folder.path().join("output.log"));
        fs::write(&secret, "value\n").unwrap();
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        assert!(tail(&link, 10, None).is_err());
    }
}
