//! An embedded lake to run tailrace on: a throwaway Postgres, a hoglake catalog in it,
//! and stand-ins for the loops of the server. The tests run on the same parts.
