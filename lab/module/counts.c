// SPDX-License-Identifier: GPL-2.0-only
/*
 * counts: a counter whose capture registers hold known times, for tests. See README.md.
 *
 * The kernel offers the interfaces used here only to GPL modules, so this file is licensed under the GPL, version 2. It
 * is not linked with the rest of the project, which is licensed MIT OR Apache-2.0.
 */
#include <linux/counter.h>
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/module.h>

#define REGISTERS 2

static unsigned int delay_ns = 20000;
module_param(delay_ns, uint, 0644);
MODULE_PARM_DESC(delay_ns, "time from the capture to the event");

static unsigned int period_ns = 10000000;
module_param(period_ns, uint, 0644);
MODULE_PARM_DESC(period_ns, "time between two events");

static unsigned int khz = 10000;
module_param(khz, uint, 0644);
MODULE_PARM_DESC(khz, "frequency of the count (0: it stands still)");

static unsigned long long ceiling = 999999;
module_param(ceiling, ullong, 0644);
MODULE_PARM_DESC(ceiling, "largest value of the count, which then starts again");

static bool broken;
module_param(broken, bool, 0644);
MODULE_PARM_DESC(broken, "the capture registers cannot be read");

static struct counter_device *counter;
static struct hrtimer timer;
static u64 captured;

/* The count at a time. */
static u64 count_at(u64 ns)
{
	u64 ticks = mul_u64_u32_div(ns, khz, 1000000), rest;

	if (ceiling == U64_MAX)
		return ticks;
	div64_u64_rem(ticks, ceiling + 1, &rest);
	return rest;
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	WRITE_ONCE(captured, count_at(ktime_to_ns(hrtimer_get_expires(timer)) - delay_ns));
	counter_push_event(counter, COUNTER_EVENT_CAPTURE, 1);
	counter_push_event(counter, COUNTER_EVENT_INDEX, 0);
	hrtimer_forward_now(timer, ns_to_ktime(period_ns));
	return HRTIMER_RESTART;
}

static int count_read(struct counter_device *counter, struct counter_count *count, u64 *value)
{
	*value = count_at(ktime_get_ns());
	return 0;
}

static int function_read(struct counter_device *counter, struct counter_count *count, enum counter_function *function)
{
	*function = COUNTER_FUNCTION_INCREASE;
	return 0;
}

static int capture_read(struct counter_device *counter, struct counter_count *count, size_t number, u64 *value)
{
	if (broken)
		return -EIO;
	*value = READ_ONCE(captured);
	return 0;
}

static int ceiling_read(struct counter_device *counter, struct counter_count *count, u64 *value)
{
	*value = ceiling;
	return 0;
}

static int watch_validate(struct counter_device *counter, const struct counter_watch *watch)
{
	if (watch->event == COUNTER_EVENT_CAPTURE && watch->channel < REGISTERS)
		return 0;
	return watch->event == COUNTER_EVENT_INDEX && watch->channel == 0 ? 0 : -EINVAL;
}

static const struct counter_ops ops = {
	.count_read = count_read,
	.function_read = function_read,
	.watch_validate = watch_validate,
};

static const enum counter_function functions[] = { COUNTER_FUNCTION_INCREASE };

static DEFINE_COUNTER_ARRAY_CAPTURE(registers, REGISTERS);

static struct counter_comp extensions[] = {
	COUNTER_COMP_CEILING(ceiling_read, NULL),
	COUNTER_COMP_ARRAY_CAPTURE(capture_read, NULL, registers),
};

static struct counter_count counts[] = {
	{
		.name = "Time",
		.functions_list = functions,
		.num_functions = ARRAY_SIZE(functions),
		.ext = extensions,
		.num_ext = ARRAY_SIZE(extensions),
	},
};

static int __init begin(void)
{
	int error;

	counter = counter_alloc(0);
	if (!counter)
		return -ENOMEM;
	counter->name = "counts";
	counter->ops = &ops;
	counter->counts = counts;
	counter->num_counts = ARRAY_SIZE(counts);
	error = counter_add(counter);
	if (error) {
		counter_put(counter);
		return error;
	}
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	timer.function = on_timer;
	hrtimer_start(&timer, ns_to_ktime(period_ns), HRTIMER_MODE_REL_SOFT);
	return 0;
}

static void __exit end(void)
{
	hrtimer_cancel(&timer);
	counter_unregister(counter);
	counter_put(counter);
}

module_init(begin);
module_exit(end);
MODULE_IMPORT_NS(COUNTER);
MODULE_DESCRIPTION("A counter whose capture registers hold known times, for tests");
MODULE_LICENSE("GPL");
