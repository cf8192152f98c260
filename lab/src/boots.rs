//! The list: which kernels boot how, and which tests run inside.

use std::time::Duration;

use guest::{
    Model, Time,
    debian::{self, Flavour, Package},
};

use crate::{
    tests::{
        agreement, audio, campaign, cards, command, culprits, evl, exact, guests, isolation, kernel, launch, nics,
        noise, peers, process, shield, threads, timer, timerlat,
    },
    verdict::Test,
};

/// One guest.
#[derive(Debug)]
pub struct Boot {
    /// What it is called.
    pub name: &'static str,
    /// Its kernel.
    pub kernel: Flavour,
    /// CPUs.
    pub cpus: u32,
    /// What passes for time: figures are asserted where it is virtual only.
    pub time: Time,
    /// Kernel arguments.
    pub append: &'static str,
    /// Devices, as arguments of the emulator.
    pub devices: &'static [&'static str],
    /// Two network cards of each of these models, each the other's cable: `eth0` and `eth1` of the first model, and so on.
    /// With a guest beside this one it is one card of each, whose cable leads to that guest's.
    pub cards: &'static [Model],
    /// A guest that runs at the same time, all its tests; this one fails where that one does.
    pub beside: Option<&'static Boot>,
    /// Modules of the kernel to load, beside the drivers of the cards.
    pub modules: &'static [&'static str],
    /// Whether `lab/module` is built for it and loaded.
    pub hold: bool,
    /// Programs of this machine to take along, with the packages that have them.
    pub programs: &'static [(&'static str, &'static str)],
    /// Programs of a newer Debian, with the packages that have them.
    pub fetched: &'static [(&'static str, Package)],
    /// How long it may take by the host's clock; a machine under load is slow.
    pub timeout: Duration,
    /// Whether the tests run inside; else they boot what they need.
    pub inside: bool,
    /// What is tested.
    pub tests: &'static [Test],
}

impl Boot {
    /// The tests of these names; all of them where no name is given.
    pub fn wanted(&self, names: &[&str]) -> impl Iterator<Item = &Test> {
        self.tests.iter().filter(move |test| names.is_empty() || names.contains(&test.name))
    }
}

/// The boot of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Boot> {
    ALL.iter().chain(ALL.iter().filter_map(|boot| boot.beside)).find(|boot| boot.name == name)
}

/// What a boot is unless it says otherwise: one CPU, virtual time, Linux 6.12 with PREEMPT_RT.
const PLAIN: Boot = Boot {
    name: "",
    kernel: debian::RT_6_12,
    cpus: 1,
    time: Time::Virtual,
    append: "",
    devices: &[],
    cards: &[],
    beside: None,
    modules: &[],
    hold: false,
    programs: &[],
    fetched: &[],
    timeout: Duration::from_secs(900),
    inside: true,
    tests: &[],
};

/// Tests by their paths, which are also their names.
macro_rules! tests {
    ($($path:path),* $(,)?) => { &[$(Test { name: stringify!($path), run: $path }),*] };
}

/// The one of two guests that does what the other asks for.
const FAR: Boot = Boot {
    name: "guests-far",
    time: Time::Real,
    cards: &[Model::E1000e, Model::Virtio],
    tests: tests![guests::answer_and_listen],
    ..PLAIN
};

/// Every boot, the longest first, so that two at a time end together.
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
            culprits::nobody_is_blamed_at_rest,
            culprits::a_thread_above_the_probe,
            culprits::interrupts_off,
            culprits::preemption_off,
            culprits::an_interrupt_handler,
            culprits::an_interrupt_thread,
            culprits::a_stop_signal,
            culprits::faults::of_an_unlocked_probe,
            culprits::storms::of_interrupts,
            noise::known_gaps_are_found,
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
            kernel::much_comes_back,
            timer::is_granted,
            timer::holds_the_cpu_awake,
            exact::delays_are_found,
            audio::known_processing_is_found,
            audio::much_to_do_is_no_hog,
            audio::a_small_model_never_misses,
            peers::cyclictest_agrees,
            peers::timerlat_agrees,
            process::known_times_are_told,
            threads::interrupts_have_threads_at_50,
            threads::a_probe_below_them_is_delayed_and_one_above_is_not,
            campaign::takes_as_long_as_planned,
        ],
        ..PLAIN
    },
    Boot {
        name: "launch",
        modules: &["veth", "sch_etf"],
        tests: tests![
            launch::frames_leave_at_their_times,
            launch::too_late_for_the_discipline_is_invalid,
            launch::what_waits_too_long_is_missed,
        ],
        ..PLAIN
    },
    Boot {
        name: "cards",
        devices: &["-device", "intel-hda", "-audiodev", "none,id=air", "-device", "hda-duplex,audiodev=air"],
        modules: &["snd_aloop", "snd_dummy", "snd_hda_codec_generic", "snd_hda_intel"],
        tests: tests![
            cards::what_is_played_comes_back_to_the_bit,
            cards::xruns_are_those_that_were_made,
            cards::an_xrun_of_one_direction_is_no_end,
            cards::a_card_paces,
            cards::hd_audio_plays,
            cards::what_cannot_be_is_refused,
            cards::are_listed,
            cards::the_round_trip_is_that_of_the_cable,
            cards::paced::every_period_is_counted,
            cards::paced::format_and_input_are_those_asked_for,
            cards::paced::xruns_are_those_that_were_made,
            cards::paced::the_smallest_buffer_is_searched_for,
            cards::played::all_goes_through_and_midi_chooses,
            cards::played::a_card_that_is_gone_is_told,
        ],
        ..PLAIN
    },
    Boot {
        name: "nics",
        cards: &[Model::E1000e, Model::Virtio],
        tests: tests![
            nics::every_frame_of_a_stream_is_accounted_for,
            nics::are_checked,
            nics::coalescing_is_set_and_put_back,
            nics::interrupt_threads_are_set_and_put_back,
            nics::round_trips_cross_them,
        ],
        ..PLAIN
    },
    Boot {
        name: "guests",
        time: Time::Real,
        cards: &[Model::E1000e, Model::Virtio],
        beside: Some(&FAR),
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
    Boot { name: "command", inside: false, tests: tests![command::a_kernel_image_is_measured], ..PLAIN },
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
        tests: tests![shield::by_partition, shield::after_a_kill],
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
        tests: tests![
            kernel::is_preempt_rt,
            timer::is_granted,
            exact::delays_are_found,
            timerlat::agrees_with_the_tracer
        ],
        ..PLAIN
    },
    Boot {
        name: "arm64",
        kernel: debian::RT_6_1_ARM64,
        tests: tests![kernel::is_preempt_rt, timer::is_granted, exact::delays_are_found],
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
            nics::without_threads_no_priority_is_set,
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
            timerlat::says_why_not,
        ],
        ..PLAIN
    },
    Boot {
        name: "evl",
        kernel: debian::EVL,
        // The core takes the tick over before another clock than the processor's could be chosen: time would stand still.
        append: "tsc=reliable clocksource=tsc nohpet",
        tests: tests![
            evl::wake_ups_are_out_of_band,
            evl::audio_plays_out_of_band,
            evl::one_that_falls_back_is_told,
            evl::what_cannot_be_is_refused,
        ],
        ..PLAIN
    },
    Boot { name: "softirqs", kernel: debian::ORDINARY_6_12, tests: tests![culprits::storms::of_softirqs], ..PLAIN },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_virtual_time_has_one_cpu() {
        for (index, boot) in ALL.iter().enumerate() {
            assert!(ALL[index + 1..].iter().all(|other| other.name != boot.name), "{}", boot.name);
            assert!(boot.cpus == 1 || boot.time != Time::Virtual, "{}", boot.name);
            assert!(!boot.tests.is_empty(), "{}", boot.name);
            assert!(boot.beside.is_none_or(|other| other.cards == boot.cards), "{}", boot.name);
        }
    }
}
