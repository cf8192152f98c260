// SPDX-License-Identifier: GPL-2.0-only
/*
 * samples: a converter with a buffer, whose samples have known times, for tests. See README.md.
 *
 * The kernel offers the interfaces used here only to GPL modules, so this file is licensed under the GPL, version 2. It
 * is not linked with the rest of the project, which is licensed MIT OR Apache-2.0.
 */
#include <linux/hrtimer.h>
#include <linux/iio/buffer.h>
#include <linux/iio/iio.h>
#include <linux/iio/trigger.h>
#include <linux/iio/trigger_consumer.h>
#include <linux/iio/triggered_buffer.h>
#include <linux/module.h>
#include <linux/platform_device.h>

static unsigned int delay_ns;
module_param(delay_ns, uint, 0644);
MODULE_PARM_DESC(delay_ns, "time by which the stamp of a sample is set back");

static unsigned int period_ns = 10000000;
module_param(period_ns, uint, 0644);
MODULE_PARM_DESC(period_ns, "time between two interrupts of the converter");

static unsigned int burst = 1;
module_param(burst, uint, 0644);
MODULE_PARM_DESC(burst, "samples of each interrupt");

static bool other_clock;
module_param(other_clock, bool, 0644);
MODULE_PARM_DESC(other_clock, "stamps are on CLOCK_REALTIME, whatever current_timestamp_clock says");

static struct platform_device *parent;
static struct iio_dev *converter;
static struct iio_trigger *ready;
static struct hrtimer timer;
static bool is_gone;

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	iio_trigger_poll(ready);
	hrtimer_forward_now(timer, ns_to_ktime(period_ns));
	return HRTIMER_RESTART;
}

static int set_state(struct iio_trigger *trigger, bool on)
{
	hrtimer_cancel(&timer);
	if (on)
		hrtimer_start(&timer, ns_to_ktime(period_ns), HRTIMER_MODE_REL_HARD);
	return 0;
}

static irqreturn_t on_trigger(int irq, void *data)
{
	struct iio_poll_func *function = data;
	s64 stamp_ns = other_clock ? ktime_get_real_ns() : function->timestamp - delay_ns;
	struct {
		u16 value;
		s64 stamp __aligned(8);
	} sample = { .value = 7 };
	unsigned int number;

	for (number = 0; number < burst; number++)
		iio_push_to_buffers_with_timestamp(converter, &sample, stamp_ns);
	iio_trigger_notify_done(converter->trig);
	return IRQ_HANDLED;
}

static int read_raw(struct iio_dev *device, struct iio_chan_spec const *channel, int *value, int *value2, long mask)
{
	*value = 7;
	return mask == IIO_CHAN_INFO_RAW ? IIO_VAL_INT : -EINVAL;
}

static const struct iio_info info = { .read_raw = read_raw };

static const struct iio_trigger_ops trigger_ops = { .set_trigger_state = set_state };

static const struct iio_chan_spec channels[] = {
	{
		.type = IIO_VOLTAGE,
		.indexed = 1,
		.channel = 0,
		.info_mask_separate = BIT(IIO_CHAN_INFO_RAW),
		.scan_index = 0,
		.scan_type = { .sign = 'u', .realbits = 16, .storagebits = 16, .endianness = IIO_CPU },
	},
	IIO_CHAN_SOFT_TIMESTAMP(1),
};

/* Removes the converter, as if it was unplugged. Its trigger stays. */
static void remove(void)
{
	if (is_gone)
		return;
	is_gone = true;
	iio_device_unregister(converter);
}

static int set_gone(const char *value, const struct kernel_param *parameter)
{
	remove();
	return 0;
}

static const struct kernel_param_ops gone_ops = { .set = set_gone, .get = param_get_bool };
module_param_cb(gone, &gone_ops, &is_gone, 0644);
MODULE_PARM_DESC(gone, "the converter was removed; writing anything removes it for good");

static int __init begin(void)
{
	int error = -ENOMEM;

	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	timer.function = on_timer;
	parent = platform_device_register_simple("samples", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(parent))
		return PTR_ERR(parent);
	converter = iio_device_alloc(&parent->dev, 0);
	if (!converter)
		goto no_device;
	converter->name = "samples";
	converter->info = &info;
	converter->channels = channels;
	converter->num_channels = ARRAY_SIZE(channels);
	converter->modes = INDIO_DIRECT_MODE;
	ready = iio_trigger_alloc(&parent->dev, "samples-ready");
	if (!ready)
		goto no_trigger;
	ready->ops = &trigger_ops;
	error = iio_trigger_register(ready);
	if (error)
		goto no_registered;
	error = iio_triggered_buffer_setup(converter, iio_pollfunc_store_time, on_trigger, NULL);
	if (error)
		goto no_buffer;
	error = iio_device_register(converter);
	if (!error)
		return 0;
	iio_triggered_buffer_cleanup(converter);
no_buffer:
	iio_trigger_unregister(ready);
no_registered:
	iio_trigger_free(ready);
no_trigger:
	iio_device_free(converter);
no_device:
	platform_device_unregister(parent);
	return error;
}

static void __exit end(void)
{
	remove();
	iio_triggered_buffer_cleanup(converter);
	iio_trigger_unregister(ready);
	iio_trigger_free(ready);
	iio_device_free(converter);
	platform_device_unregister(parent);
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("A converter with a buffer, whose samples have known times, for tests");
MODULE_LICENSE("GPL");
