// SPDX-License-Identifier: GPL-2.0-only
/*
 * ports: a serial port whose output RTS is wired to its input CTS, for tests. See README.md.
 *
 * The kernel offers the interfaces used here only to GPL modules, so this file is licensed under the GPL, version 2. It
 * is not linked with the rest of the project, which is licensed MIT OR Apache-2.0.
 */
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/serial_core.h>
#include <linux/tty_flip.h>

static unsigned int delay_ns = 20000;
module_param(delay_ns, uint, 0644);
MODULE_PARM_DESC(delay_ns, "time from a change of RTS to that of CTS");

static unsigned int lose_every;
module_param(lose_every, uint, 0644);
MODULE_PARM_DESC(lose_every, "each Nth rising edge and the falling edge after it cause no interrupt (0: none)");

static unsigned int edges, lost;
module_param(edges, uint, 0444);
module_param(lost, uint, 0444);

static struct platform_device *parent;
static struct uart_port port;
static struct hrtimer timer;
static bool rts, cts;

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	unsigned long flags;

	uart_port_lock_irqsave(&port, &flags);
	if (cts != rts) {
		cts = rts;
		uart_handle_cts_change(&port, cts);
		wake_up_interruptible(&port.state->port.delta_msr_wait);
	}
	uart_port_unlock_irqrestore(&port, flags);
	return HRTIMER_NORESTART;
}

/* Called with the lock of the port. */
static void set_mctrl(struct uart_port *port, unsigned int lines)
{
	bool before = rts;

	rts = lines & TIOCM_RTS;
	if (rts == before)
		return;
	if (rts) {
		edges++;
		if (lose_every && edges % lose_every == 0) {
			lost++;
			return;
		}
	}
	hrtimer_start(&timer, ns_to_ktime(delay_ns), HRTIMER_MODE_REL_SOFT);
}

static unsigned int get_mctrl(struct uart_port *port)
{
	return TIOCM_CAR | TIOCM_DSR | (cts ? TIOCM_CTS : 0);
}

static unsigned int tx_empty(struct uart_port *port)
{
	return TIOCSER_TEMT;
}

static void nothing(struct uart_port *port)
{
}

static int startup(struct uart_port *port)
{
	return 0;
}

static void set_termios(struct uart_port *port, struct ktermios *new, const struct ktermios *old)
{
}

static const char *type(struct uart_port *port)
{
	return "ports";
}

static void config_port(struct uart_port *port, int flags)
{
}

static int verify_port(struct uart_port *port, struct serial_struct *settings)
{
	return -EINVAL;
}

static const struct uart_ops ops = {
	.tx_empty = tx_empty,
	.set_mctrl = set_mctrl,
	.get_mctrl = get_mctrl,
	.stop_tx = nothing,
	.start_tx = nothing,
	.stop_rx = nothing,
	.enable_ms = nothing,
	.startup = startup,
	.shutdown = nothing,
	.set_termios = set_termios,
	.type = type,
	.release_port = nothing,
	.request_port = startup,
	.config_port = config_port,
	.verify_port = verify_port,
};

static struct uart_driver driver = {
	.owner = THIS_MODULE,
	.driver_name = "ports",
	.dev_name = "ttyWire",
	.nr = 1,
};

static int __init begin(void)
{
	int error;

	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	timer.function = on_timer;
	parent = platform_device_register_simple("ports", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(parent))
		return PTR_ERR(parent);
	error = uart_register_driver(&driver);
	if (error)
		goto no_driver;
	spin_lock_init(&port.lock);
	port.dev = &parent->dev;
	port.ops = &ops;
	port.type = PORT_8250;
	port.fifosize = 1;
	error = uart_add_one_port(&driver, &port);
	if (!error)
		return 0;
	uart_unregister_driver(&driver);
no_driver:
	platform_device_unregister(parent);
	return error;
}

static void __exit end(void)
{
	hrtimer_cancel(&timer);
	uart_remove_one_port(&driver, &port);
	uart_unregister_driver(&driver);
	platform_device_unregister(parent);
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("A serial port whose output RTS is wired to its input CTS, for tests");
MODULE_LICENSE("GPL");
