//! Tests of completions and manual pages.

use anyhow::Result;

use crate::support::TestDatabase;

/// They are made of the command line alone, whatever the configuration is.
const BROKEN: [(&str, &str); 2] = [("TAILRACE_ENV", "no/name"), ("TAILRACE__DATABASE__URL", "")];

#[tokio::test]
async fn each_shell_has_its_completions() -> Result<()> {
    let database = TestDatabase::new().await?;
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = database.ran_with(&["completions", shell], &BROKEN).await?;
        assert_eq!(ran.code, 0, "{shell}: {ran:?}");
        for word in ["policy", "--owner-url", "--idempotency-key"] {
            // Fish names an option without its dashes.
            let word = if shell == "fish" { word.trim_start_matches('-') } else { word };
            assert!(ran.out.contains(word), "{shell} lacks {word}");
        }
    }
    let ran = database.ran(&["completions", "tcsh"]).await?;
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    Ok(())
}

#[tokio::test]
async fn each_command_has_its_page() -> Result<()> {
    let database = TestDatabase::new().await?;
    let folder = tempfile::tempdir()?;
    let pages = folder.path().join("share/man1");
    let ran = database.ran_with(&["manual", &pages.to_string_lossy()], &BROKEN).await?;
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{ran:?}");
    for (page, words) in [
        ("tailrace.1", "tailrace\\-policy(1)"),
        ("tailrace-policy-set.1", "How long a partition stays"),
        ("tailrace-init.1", "owner\\-url"),
    ] {
        let text = std::fs::read_to_string(pages.join(page))?;
        assert!(text.contains(words), "{page}: {text}");
    }
    let ran = database.ran(&["manual", "/proc/nowhere"]).await?;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("making /proc/nowhere"), "{ran:?}");
    Ok(())
}
