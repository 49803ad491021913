//! Pure rules of `src/rules`, as all that goes by them does.

pub mod clock_guard;
