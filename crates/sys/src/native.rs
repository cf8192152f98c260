//! Reads numbers in native byte order out of the kernel's binary structures.

macro_rules! readers {
    ($($name:ident: $number:ty),*) => {$(
        #[doc = concat!("The `", stringify!($number), "` at byte `at`; `None` past the end.")]
        #[must_use]
        pub fn $name(bytes: &[u8], at: usize) -> Option<$number> {
            Some(<$number>::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
        }
    )*};
}

readers!(u16_at: u16, u32_at: u32, u64_at: u64, i32_at: i32);
