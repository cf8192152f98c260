//! The boots: kernels with their configuration, and the tests that run inside.

use std::time::Duration;

use guest::{
    Model, Time,
    debian::{self, Flavour, Package},
};

use crate::{
    tests::{
        agreement, amp, audio, bound, campaign, cards, command, culprits, evl, exact, guests, interrupt, isolation,
        kernel, launch, nics, noise, package, peers, process, reboot, shield, threads, timer, timerlat, tune,
    },
    verdict::Test,
};

/// A guest with its tests.
#[derive(Debug)]
pub struct Boot {
    /// Its name.
    pub name: &'static str,
    /// Its kernel.
    pub kernel: Flavour,
    /// CPUs.
    pub cpus: u32,
    /// The clock. Times are asserted only with virtual time.
    pub time: Time,
    /// Kernel arguments.
    pub append: &'static str,
    /// QEMU arguments for additional devices.
    pub devices: &'static [&'static str],
    /// Two connected network cards of each of these models: `eth0` and `eth1` of the first model, and so on. With a
    /// peer guest, one card of each model, connected to that of the peer.
    pub cards: &'static [Model],
    /// A second guest that runs at the same time with all its tests. If it fails, this boot fails.
    pub peer: Option<&'static Boot>,
    /// Kernel modules to load, in addition to those of the cards.
    pub modules: &'static [&'static str],
    /// True if `lab/module` is built and loaded.
    pub hold: bool,
    /// Further modules to build and load. `counter` is the kernel's counter subsystem, which Debian's kernels lack.
    pub built: &'static [&'static str],
    /// Programs of this machine to add, with their Debian packages.
    pub programs: &'static [(&'static str, &'static str)],
    /// Programs from another Debian, with their packages.
    pub fetched: &'static [(&'static str, Package)],
    /// Static programs that the user gives, each with the environment variable that contains its path. Without one of
    /// them, the boot is skipped.
    pub given: &'static [(&'static str, &'static str)],
    /// True if the guest has the Debian package of punctual.
    pub package: bool,
    /// Timeout on the host's clock, generous because the host may be busy.
    pub timeout: Duration,
    /// True if the tests run inside the guest. Otherwise they run on the host and boot guests themselves.
    pub inside: bool,
    /// The tests.
    pub tests: &'static [Test],
}

impl Boot {
    /// The tests with these names, or all tests if no name is given.
    pub fn wanted(&self, names: &[&str]) -> impl Iterator<Item = &Test> {
        self.tests.iter().filter(move |test| names.is_empty() || names.contains(&test.name))
    }
}

/// Finds a boot by name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Boot> {
    ALL.iter().chain(ALL.iter().filter_map(|boot| boot.peer)).find(|boot| boot.name == name)
}

/// The defaults: one CPU, virtual time, Linux 6.12 with PREEMPT_RT.
const PLAIN: Boot = Boot {
    name: "",
    kernel: debian::RT_6_12,
    cpus: 1,
    time: Time::Virtual,
    append: "",
    devices: &[],
    cards: &[],
    peer: None,
    modules: &[],
    hold: false,
    built: &[],
    programs: &[],
    fetched: &[],
    given: &[],
    package: false,
    timeout: Duration::from_secs(900),
    inside: true,
    tests: &[],
};

/// Builds a list of tests. A test's name is its path.
macro_rules! tests {
    ($($path:path),* $(,)?) => { &[$(Test { name: stringify!($path), run: $path }),*] };
}

/// Kernel arguments for the EVL core. It takes over the tick before the kernel could switch away from another clock
/// source; time would then stop.
const EVL_ARGUMENTS: &str = "tsc=reliable clocksource=tsc nohpet";
/// Also a GPIO chip of Linux.
const EVL_WITH_LINES: &str = "tsc=reliable clocksource=tsc nohpet gpio_mockup.gpio_mockup_ranges=-1,4";

/// The peer of `guests`, which answers and listens.
const FAR: Boot = Boot {
    name: "guests-far",
    time: Time::Real,
    cards: &[Model::E1000e, Model::Virtio],
    tests: tests![guests::answer_and_listen],
    ..PLAIN
};

/// All boots, the longest first, so that parallel jobs finish at about the same time.
pub const ALL: &[Boot] = &[
    Boot {
        name: "agreement",
        hold: true,
        fetched: &[("rtla", debian::RTLA)],
        tests: tests![agreement::with_rtla],
        ..PLAIN
    },
    Boot {
        name: "culprits",
        hold: true,
        tests: tests![
            culprits::names_no_culprit_without_delays,
            culprits::a_thread_above_the_probe,
            culprits::interrupts_off,
            culprits::preemption_off,
            culprits::an_interrupt_handler,
            culprits::an_interrupt_thread,
            culprits::a_stop_signal,
            culprits::faults::of_an_unlocked_probe,
            culprits::storms::of_interrupts,
            noise::finds_known_gaps,
            bound::contains_what_is_provoked,
            bound::timerlat_shows_more_sections,
        ],
        ..PLAIN
    },
    Boot {
        name: "interrupts",
        modules: &["evdev"],
        hold: true,
        programs: &[("sh", "dash")],
        tests: tests![
            interrupt::the_hpet_counts_each_interrupt,
            interrupt::interrupts_off_delay_the_hpet,
            interrupt::a_handler_delays_the_hpet,
            interrupt::a_thread_delays_the_hpet,
            interrupt::a_storm_is_counted_and_bounded,
            interrupt::the_way_of_an_edge_is_split,
            interrupt::lost_and_spurious_edges_are_counted,
            interrupt::unusable_lines_are_reported,
            interrupt::an_outside_judge_measures_the_whole_way,
            interrupt::pair::the_far_machine_measures,
            interrupt::pair::a_judge_here_asks_the_far_machine,
            interrupt::pair::ctrl_c_keeps_the_results,
            interrupt::packets_of_an_input_device_begin_at_their_stamp,
            interrupt::dropped_packets_are_reported,
            interrupt::repetitions_of_a_key_are_no_interrupts,
            interrupt::a_clock_stamps_its_pin_independent_of_the_kernel,
            interrupt::a_full_queue_of_stamps_is_reported,
            interrupt::pins_are_put_back,
            interrupt::unusable_devices_are_reported,
            interrupt::irqs::a_priority_lets_a_thread_preempt_others,
            interrupt::irqs::a_device_shares_the_interrupt_of_its_controller,
            interrupt::irqs::unknown_interrupts_are_reported,
            interrupt::removed::an_input_device_and_a_clock,
            interrupt::removed::a_chip,
        ],
        ..PLAIN
    },
    Boot {
        name: "samples",
        modules: &["industrialio-triggered-buffer", "iio-trig-sysfs", "iio-trig-hrtimer"],
        hold: true,
        built: &["samples"],
        tests: tests![
            interrupt::samples::begin_at_their_stamp,
            interrupt::samples::a_full_buffer_is_reported,
            interrupt::samples::settings_are_put_back,
            interrupt::samples::unusable_devices_are_reported,
            interrupt::samples::a_trigger_of_the_kernel_starts_them,
            interrupt::removed::a_converter,
        ],
        ..PLAIN
    },
    Boot {
        name: "serial",
        hold: true,
        built: &["ports"],
        programs: &[("stty", "coreutils")],
        tests: tests![
            interrupt::serial::each_edge_has_its_interrupt,
            interrupt::serial::edges_without_an_interrupt_are_counted,
            interrupt::serial::unusable_ports_are_reported,
        ],
        ..PLAIN
    },
    Boot {
        name: "parport",
        devices: &["-chardev", "null,id=printer", "-device", "isa-parallel,chardev=printer"],
        modules: &["parport_pc", "ppdev"],
        tests: tests![
            interrupt::parport::each_edge_has_its_interrupt,
            interrupt::parport::a_thread_delays_the_interrupt,
            interrupt::parport::a_port_in_use_is_reported,
        ],
        ..PLAIN
    },
    Boot {
        name: "edges",
        hold: true,
        fetched: &[("gpiomon", debian::GPIOD)],
        tests: tests![interrupt::costs::of_edges],
        ..PLAIN
    },
    Boot {
        name: "pulses",
        devices: &["-chardev", "null,id=printer", "-device", "isa-parallel,chardev=printer"],
        modules: &["parport_pc", "pps_parport"],
        fetched: &[("ppstest", debian::PPS_TOOLS)],
        tests: tests![
            interrupt::pulses::begin_at_the_stamp_of_their_handler,
            interrupt::pulses::a_thread_delays_the_program,
            interrupt::costs::of_pulses,
            interrupt::removed::a_source_of_pulses,
        ],
        ..PLAIN
    },
    Boot {
        name: "counted",
        // The interrupts of the real-time clock would come from a timer of the HPET.
        append: "hpet=disable",
        modules: &["uio"],
        hold: true,
        built: &["user"],
        tests: tests![
            interrupt::counted::a_clock_has_an_interrupt_each_second,
            interrupt::counted::each_interrupt_of_a_user_device_has_its_time,
            interrupt::counted::a_thread_delays_the_program,
        ],
        ..PLAIN
    },
    Boot { name: "tune", hold: true, tests: tests![tune::a_search_finds_the_interrupt_that_delays], ..PLAIN },
    Boot {
        name: "counters",
        hold: true,
        built: &["counter", "counts"],
        tests: tests![
            interrupt::counters::a_capture_register_shows_the_whole_way,
            interrupt::counters::interrupts_off_delay_a_capture,
            interrupt::counters::events_without_a_register_begin_at_their_stamp,
            interrupt::counters::unusable_counts_are_reported,
            interrupt::removed::a_counter,
        ],
        ..PLAIN
    },
    Boot {
        name: "virtual",
        devices: &["-chardev", "null,id=printer", "-device", "isa-parallel,chardev=printer"],
        modules: &["parport_pc", "pps_parport"],
        programs: &[("cyclictest", "rt-tests")],
        tests: tests![
            kernel::is_preempt_rt,
            kernel::returns_large_files,
            timer::is_granted,
            timer::holds_the_cpu_awake,
            exact::finds_delays,
            audio::measures_known_processing_times,
            audio::high_load_does_not_trigger_the_guard,
            audio::a_small_model_meets_every_period,
            peers::cyclictest_agrees,
            peers::timerlat_agrees,
            process::measures_known_times,
            threads::interrupts_have_threads_at_50,
            threads::only_a_probe_of_lower_priority_is_delayed,
            campaign::takes_as_long_as_planned,
        ],
        ..PLAIN
    },
    Boot {
        name: "launch",
        modules: &["veth", "sch_etf"],
        tests: tests![
            launch::frames_leave_at_their_launch_times,
            launch::frames_queued_too_late_are_invalid,
            launch::frames_dequeued_too_late_are_missed,
        ],
        ..PLAIN
    },
    Boot {
        name: "cards",
        devices: &["-device", "intel-hda", "-audiodev", "none,id=air", "-device", "hda-duplex,audiodev=air"],
        modules: &["snd_aloop", "snd_dummy", "snd_hda_codec_generic", "snd_hda_intel"],
        tests: tests![
            cards::loopback_is_bit_exact,
            cards::detects_exactly_the_provoked_xruns,
            cards::restarts_after_an_xrun_of_one_direction,
            cards::a_card_sets_the_pace,
            cards::hd_audio_works,
            cards::rejects_unsupported_configurations,
            cards::are_listed,
            cards::measures_the_loopback_latency,
            cards::paced::counts_every_period,
            cards::paced::uses_the_requested_format_and_input,
            cards::paced::detects_exactly_the_provoked_xruns,
            cards::paced::finds_the_smallest_buffer,
            cards::played::passes_audio_and_switches_presets_by_midi,
            cards::played::reports_a_removed_card,
        ],
        ..PLAIN
    },
    Boot {
        name: "nics",
        cards: &[Model::E1000e, Model::Virtio],
        tests: tests![
            nics::accounts_for_every_frame,
            nics::stamps_sent_frames,
            nics::are_checked,
            nics::sets_and_restores_coalescing,
            nics::sets_and_restores_interrupt_threads,
            nics::measures_round_trips,
        ],
        ..PLAIN
    },
    Boot {
        name: "guests",
        time: Time::Real,
        cards: &[Model::E1000e, Model::Virtio],
        peer: Some(&FAR),
        tests: tests![guests::ask_and_talk],
        ..PLAIN
    },
    Boot {
        name: "isolcpus",
        cpus: 2,
        time: Time::Real,
        append: "isolcpus=1 nohz_full=1 rcu_nocbs=1 irqaffinity=0",
        tests: tests![isolation::at_boot],
        ..PLAIN
    },
    Boot {
        name: "package",
        package: true,
        // dpkg refuses to work without the others.
        fetched: &[
            ("dpkg", debian::DPKG),
            ("dpkg-deb", debian::DPKG),
            ("dpkg-query", debian::DPKG),
            ("dpkg-split", debian::DPKG),
            ("diff", debian::DPKG),
            ("ldconfig", debian::DPKG),
            ("rm", debian::DPKG),
            ("sh", debian::DPKG),
            ("start-stop-daemon", debian::DPKG),
            ("tar", debian::DPKG),
        ],
        tests: tests![package::is_installed_and_removed],
        ..PLAIN
    },
    Boot { name: "reboot", inside: false, tests: tests![reboot::a_search_goes_through_its_boots], ..PLAIN },
    Boot {
        name: "command",
        inside: false,
        tests: tests![command::measures_a_kernel_image, command::finds_a_planted_delay],
        ..PLAIN
    },
    Boot {
        name: "partition",
        cpus: 2,
        time: Time::Real,
        tests: tests![isolation::by_partition, timerlat::on_two_cpus],
        ..PLAIN
    },
    Boot {
        name: "shield",
        cpus: 2,
        time: Time::Real,
        tests: tests![shield::by_partition, shield::after_a_kill, interrupt::irqs::an_interrupt_moves_to_another_cpu],
        ..PLAIN
    },
    Boot {
        name: "shield-without-cpuset",
        cpus: 2,
        time: Time::Real,
        append: "cgroup_disable=cpuset",
        tests: tests![shield::by_affinity],
        ..PLAIN
    },
    Boot {
        name: "old",
        kernel: debian::RT_6_1,
        tests: tests![kernel::is_preempt_rt, timer::is_granted, exact::finds_delays, timerlat::agrees_with_the_tracer],
        ..PLAIN
    },
    Boot {
        name: "arm64",
        kernel: debian::RT_6_1_ARM64,
        tests: tests![kernel::is_preempt_rt, timer::is_granted, exact::finds_delays, amp::takes_known_instructions],
        ..PLAIN
    },
    Boot {
        name: "ordinary",
        kernel: debian::ORDINARY_6_12,
        cards: &[Model::Virtio],
        tests: tests![
            kernel::is_ordinary,
            timer::is_granted,
            timerlat::is_absent,
            nics::refuses_priorities_without_interrupt_threads,
        ],
        ..PLAIN
    },
    Boot {
        name: "timerlat",
        hold: true,
        tests: tests![
            timerlat::agrees_with_the_tracer,
            timerlat::interrupts_off,
            timerlat::preemption_off,
            timerlat::leaves_nothing_behind,
            timerlat::explains_why_timerlat_is_unavailable,
        ],
        ..PLAIN
    },
    Boot {
        name: "evl",
        kernel: debian::EVL,
        append: EVL_WITH_LINES,
        tests: tests![
            evl::wake_ups_are_out_of_band,
            evl::both_cores_are_compared,
            evl::gravity_is_calibrated_and_restored,
            evl::audio_plays_out_of_band,
            evl::reports_threads_that_fall_back,
            evl::rejects_unsupported_configurations,
            evl::lines_need_an_option_of_the_kernel,
            evl::lines_of_linux_are_refused,
        ],
        ..PLAIN
    },
    Boot {
        name: "evl-gpio",
        kernel: debian::EVL_GPIO,
        append: EVL_ARGUMENTS,
        tests: tests![
            evl::gpio::edges_wake_the_thread,
            evl::gpio::a_silent_line_ends_with_the_run,
            evl::gpio::a_judge_is_answered,
            evl::gpio::a_stopped_thread_is_reported,
            evl::gpio::unusable_lines_are_reported,
        ],
        ..PLAIN
    },
    Boot {
        name: "latmus",
        kernel: debian::EVL,
        append: EVL_ARGUMENTS,
        given: &[("latmus", "PUNCTUAL_LAB_LATMUS")],
        tests: tests![evl::gravity_agrees_with_latmus],
        ..PLAIN
    },
    Boot { name: "softirqs", kernel: debian::ORDINARY_6_12, tests: tests![culprits::storms::of_softirqs], ..PLAIN },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boots_are_consistent() {
        for (index, boot) in ALL.iter().enumerate() {
            assert!(ALL[index + 1..].iter().all(|other| other.name != boot.name), "{}", boot.name);
            assert!(boot.cpus == 1 || boot.time != Time::Virtual, "{}", boot.name);
            assert!(!boot.tests.is_empty(), "{}", boot.name);
            assert!(boot.hold || boot.built.is_empty(), "{}", boot.name);
            assert!(boot.peer.is_none_or(|other| other.cards == boot.cards), "{}", boot.name);
        }
    }
}
