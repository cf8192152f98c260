//! Explanations held to scenarios written by hand.

mod kinds;
mod nasty;
mod properties;
mod scenario;
