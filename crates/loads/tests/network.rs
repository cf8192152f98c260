//! Frames on a named interface, in a network namespace of each test. Needs root.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod common;

use std::{
    fs::File,
    process::{Command, Output},
    sync::mpsc,
    thread,
    time::Duration,
};

use common::{as_root, exe, run};
use record::LoadProof;
use rustix::{
    io::read,
    net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with, sockopt},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};
use std::os::fd::AsFd;

/// A network namespace with a veth pair, `a0` and `b0`. Dropping it deletes the namespace.
struct Namespace(String);

impl Namespace {
    fn new(name: &str) -> Self {
        let name = format!("punctual-{name}-{}", std::process::id());
        as_root(&format!("ip netns add {name}"));
        let namespace = Self(name);
        namespace.ip("link add a0 type veth peer name b0");
        namespace.ip("link set a0 up");
        namespace.ip("link set b0 up");
        namespace
    }

    fn ip(&self, command: &str) {
        as_root(&format!("ip -n {} {command}", self.0));
    }

    fn exec(&self, words: &[&str]) -> Output {
        run(Command::new("ip").args(["netns", "exec", &self.0]).args(words))
    }

    fn load(&self, spec: &str) -> Output {
        let exe = exe();
        self.exec(&[exe.to_str().unwrap(), "run", "400", &common::online().to_string(), spec])
    }

    /// Runs a load in the namespace and returns its proof.
    fn proof(&self, spec: &str) -> LoadProof {
        let output = self.load(spec);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let proofs = stdout.lines().nth(1).unwrap_or_else(|| panic!("{output:?}"));
        serde_json::from_str::<Vec<LoadProof>>(proofs).unwrap().remove(0)
    }

    /// Runs a load that must fail in the namespace, and returns its error.
    fn error(&self, spec: &str) -> String {
        let output = self.load(spec);
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn received(&self, interface: &str) -> u64 {
        let path = format!("/sys/class/net/{interface}/statistics/rx_packets");
        String::from_utf8_lossy(&self.exec(&["cat", &path]).stdout).trim().parse().unwrap()
    }

    /// Receives the first frame with this EtherType in the namespace.
    fn first_frame(&self, ethertype: u16) -> mpsc::Receiver<Vec<u8>> {
        let (frame, frames) = mpsc::channel();
        let (listening, ready) = mpsc::channel();
        let namespace = File::open(format!("/run/netns/{}", self.0)).unwrap();
        thread::spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            let protocol = Protocol::from_raw(u32::from(ethertype.to_be()).try_into().unwrap());
            let socket =
                socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, Some(protocol)).unwrap();
            sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_secs(30))).unwrap();
            listening.send(()).unwrap();
            let mut bytes = vec![0; 2048];
            let length = read(&socket, &mut bytes[..]).unwrap();
            frame.send(bytes[..length].to_vec()).unwrap();
        });
        ready.recv().unwrap();
        frames
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run(Command::new("ip").args(["netns", "delete", &self.0]));
    }
}

/// Tests that need root. For other users `tools/test` skips them and reports their number.
mod rights {
    use super::*;

    #[test]
    fn sends_frames_on_the_interface_at_the_given_rate() {
        let namespace = Namespace::new("rate");
        let frame = namespace.first_frame(0x88b5);
        let before = namespace.received("b0");
        let proof = namespace.proof("net:if=a0,rate=2000");
        assert!(proof.ran && proof.cpu_time_ns > 0, "{proof:?}");
        assert!(namespace.received("b0") - before >= proof.operations, "{proof:?}");
        let wanted = proof.wall_ns as f64 / 1e9 * 2000.0;
        assert!((proof.operations as f64) <= wanted * 1.1 + 20.0, "no faster than the given rate: {proof:?}");
        assert!(proof.operations as f64 >= wanted * 0.1, "{proof:?}");

        let frame = frame.recv_timeout(Duration::from_secs(30)).expect("a frame of EtherType 0x88B5");
        let destination = &frame[..6];
        assert_eq!(destination[0] & 0b11, 0b10, "unicast, locally administered: {frame:02x?}");
        let own = namespace.exec(&["cat", "/sys/class/net/a0/address"]);
        let source = frame[6..12].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
        assert_eq!(source, String::from_utf8_lossy(&own.stdout).trim());
        assert_eq!(frame.len(), 60, "the smallest frame, without its checksum");
    }

    #[test]
    fn default_rate_is_limited() {
        let namespace = Namespace::new("default");
        let proof = namespace.proof("net:if=a0");
        let wanted = proof.wall_ns as f64 / 1e9 * 10_000.0;
        assert!(proof.ran && proof.operations as f64 <= wanted * 1.1 + 20.0, "{proof:?}");
    }

    #[test]
    fn explains_why_an_interface_is_refused() {
        let namespace = Namespace::new("wrong");
        namespace.ip("link add down0 type veth peer name down1");
        for (spec, expected) in [
            ("net:if=eth99", "there is no interface eth99; see `ip link`"),
            ("net:if=lo", "lo is not Ethernet"),
            ("net:if=down0", "down0 is down; `sudo ip link set down0 up`"),
            ("net", "loopback is down; `sudo ip link set lo up`"),
        ] {
            let error = namespace.error(spec);
            assert!(error.contains(expected), "{spec}: {error}");
        }
        let exe = exe();
        let words = ["setpriv", "--bounding-set", "-net_raw", exe.to_str().unwrap(), "run", "100", "0", "net:if=a0"];
        let refused = namespace.exec(&words);
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert!(
            !refused.status.success() && stderr.contains("setcap cap_net_raw,cap_sys_nice,cap_ipc_lock+ep"),
            "{stderr}"
        );
    }

    #[test]
    fn load_ends_with_a_reason_when_its_interface_goes_down() {
        let namespace = Namespace::new("gone");
        let name = namespace.0.clone();
        let remover = thread::spawn(move || {
            thread::sleep(Duration::from_millis(250));
            as_root(&format!("ip -n {name} link set a0 down"));
        });
        let exe = exe();
        let output = namespace.exec(&[exe.to_str().unwrap(), "run", "2500", "0", "net:if=a0"]);
        remover.join().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let proof = serde_json::from_str::<Vec<LoadProof>>(stdout.lines().nth(1).unwrap()).unwrap().remove(0);
        assert!(!proof.ran && proof.operations > 0, "{proof:?}");
        assert!(proof.note.unwrap().contains("a0 is down"));
    }
}
