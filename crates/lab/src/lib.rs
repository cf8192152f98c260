//! Kernels in small guests: build an initramfs, boot it, bring files and the exit status back.
