// SPDX-License-Identifier: GPL-2.0-only
/*
 * events: an input device and a PTP clock, whose events have known times, for tests. See README.md.
 *
 * The kernel offers the interfaces used here only to GPL modules, so this file is licensed under the GPL, version 2. It
 * is not linked with the rest of the project, which is licensed MIT OR Apache-2.0.
 */
#include <linux/hrtimer.h>
#include <linux/input.h>
#include <linux/module.h>
#include <linux/ptp_clock_kernel.h>

#define PINS 2

static unsigned int delay_ns = 20000;
module_param(delay_ns, uint, 0644);
MODULE_PARM_DESC(delay_ns, "time from the stamp of an event to its report");

static unsigned int period_ns = 10000000;
module_param(period_ns, uint, 0644);
MODULE_PARM_DESC(period_ns, "time between two reports");

static unsigned int burst = 1;
module_param(burst, uint, 0644);
MODULE_PARM_DESC(burst, "events that are reported at once");

static unsigned int limit;
module_param(limit, uint, 0644);
MODULE_PARM_DESC(limit, "reports until the device is opened or enabled again (0: no limit)");

static unsigned long long ahead_ns = 1000000000000ULL;
module_param(ahead_ns, ullong, 0444);
MODULE_PARM_DESC(ahead_ns, "time of the PTP clock minus CLOCK_MONOTONIC");

static bool all_edges;
module_param(all_edges, bool, 0644);
MODULE_PARM_DESC(all_edges, "the PTP clock cannot stamp rising edges alone");

static unsigned int made;
module_param(made, uint, 0444);
MODULE_PARM_DESC(made, "events since the device was opened or enabled");

static struct hrtimer input_timer, ptp_timer;
static struct input_dev *input;
static struct ptp_clock *ptp;
static unsigned int channel;
static bool pressed;

/* The next report is due; false after the last one. */
static bool again(struct hrtimer *timer)
{
	if (limit && made >= limit * burst)
		return false;
	hrtimer_forward_now(timer, ns_to_ktime(period_ns));
	return true;
}

static void begin_reports(struct hrtimer *timer)
{
	made = 0;
	hrtimer_start(timer, ns_to_ktime(period_ns), HRTIMER_MODE_REL_SOFT);
}

static enum hrtimer_restart on_input(struct hrtimer *timer)
{
	s64 stamp_ns = ktime_to_ns(hrtimer_get_expires(timer)) - delay_ns;
	unsigned int number;

	for (number = 0; number < burst; number++) {
		pressed = !pressed;
		made++;
		input_set_timestamp(input, ns_to_ktime(stamp_ns));
		input_report_key(input, BTN_0, pressed);
		input_sync(input);
	}
	return again(timer) ? HRTIMER_RESTART : HRTIMER_NORESTART;
}

static enum hrtimer_restart on_ptp(struct hrtimer *timer)
{
	struct ptp_clock_event event = {
		.type = PTP_CLOCK_EXTTS,
		.index = channel,
		.timestamp = ktime_to_ns(hrtimer_get_expires(timer)) - delay_ns + ahead_ns,
	};
	unsigned int number;

	for (number = 0; number < burst; number++) {
		made++;
		ptp_clock_event(ptp, &event);
	}
	return again(timer) ? HRTIMER_RESTART : HRTIMER_NORESTART;
}

static int open(struct input_dev *dev)
{
	begin_reports(&input_timer);
	return 0;
}

static void close(struct input_dev *dev)
{
	hrtimer_cancel(&input_timer);
	if (!pressed)
		return;
	pressed = false;
	input_report_key(input, BTN_0, pressed);
	input_sync(input);
}

static int gettime(struct ptp_clock_info *info, struct timespec64 *now)
{
	*now = ns_to_timespec64(ktime_get_ns() + ahead_ns);
	return 0;
}

static int settime(struct ptp_clock_info *info, const struct timespec64 *now)
{
	return -EOPNOTSUPP;
}

static int adjtime(struct ptp_clock_info *info, s64 delta)
{
	return -EOPNOTSUPP;
}

static int adjfine(struct ptp_clock_info *info, long scaled_ppm)
{
	return -EOPNOTSUPP;
}

static int verify(struct ptp_clock_info *info, unsigned int pin, enum ptp_pin_function function, unsigned int chan)
{
	return 0;
}

static int enable(struct ptp_clock_info *info, struct ptp_clock_request *request, int on)
{
	unsigned int edges = request->extts.flags & PTP_EXTTS_EDGES;

	if (request->type == PTP_CLK_REQ_PEROUT)
		return 0;
	if (request->type != PTP_CLK_REQ_EXTTS)
		return -EOPNOTSUPP;
	if (on && all_edges && edges != PTP_EXTTS_EDGES)
		return -EOPNOTSUPP;
	hrtimer_cancel(&ptp_timer);
	channel = request->extts.index;
	if (on)
		begin_reports(&ptp_timer);
	return 0;
}

static struct ptp_pin_desc pins[PINS] = {
	{ .name = "P0", .index = 0, .func = PTP_PF_NONE },
	{ .name = "P1", .index = 1, .func = PTP_PF_PEROUT },
};

static struct ptp_clock_info info = {
	.owner = THIS_MODULE,
	.name = "events",
	.n_ext_ts = PINS,
	.n_per_out = 1,
	.n_pins = PINS,
	.pin_config = pins,
	.gettime64 = gettime,
	.settime64 = settime,
	.adjtime = adjtime,
	.adjfine = adjfine,
	.verify = verify,
	.enable = enable,
};

static int __init begin(void)
{
	int error;

	hrtimer_init(&input_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	input_timer.function = on_input;
	hrtimer_init(&ptp_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	ptp_timer.function = on_ptp;
	ptp = ptp_clock_register(&info, NULL);
	if (IS_ERR_OR_NULL(ptp))
		return ptp ? PTR_ERR(ptp) : -ENODEV;
	input = input_allocate_device();
	if (!input) {
		ptp_clock_unregister(ptp);
		return -ENOMEM;
	}
	input->name = "events";
	input->open = open;
	input->close = close;
	/* The kernel's own keyboard handler does not open a device that has only buttons. */
	input_set_capability(input, EV_KEY, BTN_0);
	__set_bit(EV_REP, input->evbit);
	error = input_register_device(input);
	if (error) {
		input_free_device(input);
		ptp_clock_unregister(ptp);
	}
	return error;
}

static void __exit end(void)
{
	input_unregister_device(input);
	ptp_clock_unregister(ptp);
	hrtimer_cancel(&input_timer);
	hrtimer_cancel(&ptp_timer);
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("An input device and a PTP clock, whose events have known times, for tests");
MODULE_LICENSE("GPL");
