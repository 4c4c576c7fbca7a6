//! A program in a pseudo-terminal: what it shows, line by line, and what is typed into it.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use portable_pty::{Child, CommandBuilder, PtySize, native_pty_system};

/// Size of the screen.
const SCREEN: PtySize = PtySize { rows: 40, cols: 120, pixel_width: 0, pixel_height: 0 };
/// Characters that full-screen programs draw frames with.
const FRAME: [char; 12] = ['│', '─', '┌', '┐', '└', '┘', '├', '┤', '╭', '╮', '╰', '╯'];

/// A running program.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    /// Starts a program.
    ///
    /// # Errors
    /// When there is no pseudo-terminal or no such program.
    pub fn start(command: CommandBuilder) -> Result<Self> {
        let pair = native_pty_system().openpty(SCREEN)?;
        let child = pair.slave.spawn_command(command)?;
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader()?;
        let writer = pair.master.take_writer()?;
        let (send, output) = channel();
        std::thread::spawn(move || {
            // The master stays open as long as somebody reads.
            let _master = pair.master;
            let mut buffer = [0; 4096];
            while let Ok(read) = reader.read(&mut buffer) {
                let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
                    break;
                };
                if send.send(bytes.to_vec()).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, writer, output, seen: String::new() })
    }

    /// Waits until a whole line equals `line`. Lines are compared without control sequences, frames and
    /// white space, so an echoed prompt that only contains the text does not count.
    ///
    /// # Errors
    /// When the time is up or the program ends first; the text tells what was seen.
    pub fn wait_line(&mut self, line: &str, limit: Duration) -> Result<()> {
        self.wait(limit, &format!("a line {line:?}"), |seen| {
            plain(seen).lines().any(|shown| bare(shown) == line)
        })
    }

    /// Waits until the text appears anywhere.
    ///
    /// # Errors
    /// As [`Terminal::wait_line`].
    pub fn wait_text(&mut self, text: &str, limit: Duration) -> Result<()> {
        self.wait(limit, &format!("{text:?}"), |seen| plain(seen).contains(text))
    }

    /// Everything that was shown so far, without control sequences.
    #[must_use]
    pub fn shown(&self) -> String {
        plain(&self.seen)
    }

    /// Types keys.
    ///
    /// # Errors
    /// When the program no longer reads.
    pub fn type_keys(&mut self, keys: &str) -> Result<()> {
        self.writer.write_all(keys.as_bytes())?;
        self.writer.flush().context("the terminal does not take keys")
    }

    /// Waits for the end and returns the exit code.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn wait_end(&mut self, limit: Duration) -> Result<u32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.exit_code());
            }
            if begun.elapsed() > limit {
                bail!("still running after {limit:?}; shown:\n{}", self.shown());
            }
            self.take(Duration::from_millis(50));
        }
    }

    fn wait(&mut self, limit: Duration, what: &str, holds: impl Fn(&str) -> bool) -> Result<()> {
        let begun = Instant::now();
        loop {
            if holds(&self.seen) {
                return Ok(());
            }
            let ended = !self.take(Duration::from_millis(100));
            if begun.elapsed() > limit || (ended && !holds(&self.seen)) {
                bail!("{what} was not shown; shown:\n{}", self.shown());
            }
        }
    }

    /// Takes what arrived; false when nothing more can come.
    fn take(&mut self, patience: Duration) -> bool {
        match self.output.recv_timeout(patience) {
            Ok(bytes) => {
                self.seen.push_str(&String::from_utf8_lossy(&bytes));
                while let Ok(more) = self.output.try_recv() {
                    self.seen.push_str(&String::from_utf8_lossy(&more));
                }
                true
            }
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
    }
}

/// Text without control sequences; a cursor movement counts as a line break.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => match characters.next() {
                Some('[') => {
                    let end = characters.by_ref().find(|next| ('@'..='~').contains(next));
                    if matches!(end, Some('A' | 'B' | 'E' | 'F' | 'G' | 'H' | 'd' | 'f')) {
                        plain.push('\n');
                    }
                }
                Some(']') => {
                    while let Some(next) = characters.next() {
                        if next == '\u{7}' || (next == '\u{1b}' && characters.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                _ => {}
            },
            '\r' => plain.push('\n'),
            other => plain.push(other),
        }
    }
    plain
}

/// A line without frames and white space around it.
fn bare(line: &str) -> &str {
    line.trim_matches(|character: char| character.is_whitespace() || FRAME.contains(&character))
}

#[cfg(test)]
mod tests {
    use super::{bare, plain};

    #[test]
    fn control_sequences_and_frames_do_not_count() {
        let shown =
            plain("\u{1b}]0;title\u{7}\u{1b}[2K\u{1b}[1G│ \u{1b}[32mN1\u{1b}[0m │\r\nReply exactly: N1\r\n");
        let lines: Vec<&str> = shown.lines().map(bare).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, ["N1", "Reply exactly: N1"]);
    }
}
