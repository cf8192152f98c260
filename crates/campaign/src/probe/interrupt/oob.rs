//! GPIO lines that a thread of the EVL core uses, instead of Linux.

use std::thread;

use machine::{Root, lacks_kernel_option};
use sys::{
    evl::{
        self, EvlError,
        gpio::{Input, LineError, Output},
    },
    interrupt::gpio::{Active, Chip},
    sched::{self, Policy},
};

use super::source::{GpioLine, SourceError};
use crate::probe::definition::PrepareError;

/// The priority of the thread that checks the lines, before the measurement.
const PRIORITY: u8 = 1;

/// Checks that the kernel has the option for such lines, as far as its configuration is readable. Without it, the kernel
/// may accept a line, and switch on a pull-up resistor.
pub fn check_kernel(root: &Root) -> Result<(), SourceError> {
    if lacks_kernel_option(root, "GPIOLIB_OOB") { Err(no_option()) } else { Ok(()) }
}

/// Takes a line as an input or an output.
pub fn take<T>(
    line: &GpioLine,
    (chip, offset): (&Chip, u32),
    active: Active,
    open: impl FnOnce(&Chip, u32, Active) -> Result<T, LineError>,
) -> Result<T, PrepareError> {
    open(chip, offset, active).map_err(|error| match error {
        LineError::Evl(error) => error.into(),
        LineError::Refused(error) => {
            let otherwise = "the kernel needs CONFIG_GPIOLIB_OOB and CONFIG_GPIO_CDEV_V1, and the driver of the chip must \
                             support the line out-of-band: see `dmesg`, or choose another";
            line.refused(chip, offset, &error, otherwise).into()
        }
    })
}

/// Checks that the core knows the lines. The thread that measures on `cpu` could only fail.
pub fn check(cpu: Option<u32>, input: &Input, output: Option<&Output>) -> Result<(), PrepareError> {
    let cpu = cpu.unwrap_or_else(sched::current_cpu);
    // The core answers only threads that are attached to it.
    let checked = thread::scope(|scope| {
        let attached = scope.spawn(|| {
            let granted = sched::set_affinity(&[cpu]).and_then(|()| sched::set_policy(Policy::Fifo(PRIORITY)));
            granted.map_err(|source| EvlError::Failed { step: "needs SCHED_FIFO and its CPU", source })?;
            let _thread = evl::Thread::attach(&format!("lines.{}", sched::thread_id()), PRIORITY, cpu)?;
            let known = input.is_out_of_band().and_then(|of_input| {
                let of_output = output.map_or(Ok(true), Output::is_out_of_band)?;
                Ok(of_input && of_output)
            });
            known.map_err(|source| EvlError::Failed { step: "does not say if it knows the line", source })
        });
        attached.join()
    });
    match checked {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(no_option().into()),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err("the thread that checks the GPIO lines failed; please report this".into()),
    }
}

fn no_option() -> SourceError {
    SourceError(
        "this kernel has no GPIO lines for threads of the EVL core: boot one built with CONFIG_GPIOLIB_OOB=y, see \
         https://v4.xenomai.org/core/oob-drivers/gpio/, or leave out --core evl"
            .to_owned(),
    )
}
