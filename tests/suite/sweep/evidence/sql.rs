//! Tests that SQL and the pure rules read the same upper bound of a column.

use anyhow::Result;
use tailrace::rules::expiry::evidence::{Bound, BoundUnits};

use crate::support::TestDatabase;

#[tokio::test]
async fn both_read_the_same_bounds() -> Result<()> {
    let database = TestDatabase::new().await?;
    let mut bounds: Vec<Vec<u8>> = vec![vec![], vec![1], vec![1, 2, 3, 4, 5], vec![0; 9]];
    let days =
        [0, 1, -1, 20_713, -2_440_588, 106_751_989, 106_751_990, 106_751_991, i32::MAX, i32::MIN];
    bounds.extend(days.map(|days| days.to_le_bytes().to_vec()));
    let counts = [
        0,
        1,
        -1,
        999,
        1_000,
        1_001,
        -999,
        -1_000,
        -1_001,
        1_789_621_200_000_000,
        1_789_621_200_000_000_001,
        i64::MAX,
        i64::MIN,
        i64::MAX - 1,
        i64::MIN + 1,
    ];
    bounds.extend(counts.map(|count: i64| count.to_le_bytes().to_vec()));
    for (micros, nanos) in [(true, false), (false, true), (true, true)] {
        for bytes in &bounds {
            let told: Option<i64> =
                sqlx::query_scalar("SELECT tailrace.latest_of_bound($1, $2, $3)")
                    .bind(bytes)
                    .bind(micros)
                    .bind(nanos)
                    .fetch_one(&database.pool)
                    .await?;
            let expected = Bound::of_bytes(bytes).map(|bound| {
                let latest = BoundUnits { micros, nanos }.latest(bound).nanos();
                // Rounded up to the microsecond, within what 64 bits hold.
                let micros = latest.div_euclid(1_000) + i128::from(latest.rem_euclid(1_000) > 0);
                micros.clamp(i64::MIN.into(), i64::MAX.into()) as i64
            });
            assert_eq!(told, expected, "{bytes:?} {micros} {nanos}");
        }
    }
    Ok(())
}
