// SPDX-License-Identifier: GPL-2.0-only
/*
 * lines: a GPIO chip whose outputs are wired to its inputs, for tests. See README.md.
 *
 * The kernel offers the interfaces used here only to GPL modules, so this file is licensed under the GPL, version 2. It
 * is not linked with the rest of the project, which is licensed MIT OR Apache-2.0.
 */
#include <linux/gpio/driver.h>
#include <linux/hrtimer.h>
#include <linux/irq.h>
#include <linux/irqdomain.h>
#include <linux/module.h>

#define WIRES 2				/* outputs 0 and 1, inputs 2 and 3 */
#define BOUNCE_NS (20 * NSEC_PER_USEC)	/* from an interrupt to its repetition */

static unsigned int delay_ns = 20000;
module_param(delay_ns, uint, 0644);
MODULE_PARM_DESC(delay_ns, "time from a rising edge of an output to the interrupt of its input");

static unsigned int lose_every;
module_param(lose_every, uint, 0644);
MODULE_PARM_DESC(lose_every, "each Nth rising edge causes no interrupt (0: none)");

static unsigned int bounce_every;
module_param(bounce_every, uint, 0644);
MODULE_PARM_DESC(bounce_every, "each Nth rising edge causes two interrupts (0: none)");

static unsigned int edges, lost, bounced;
module_param(edges, uint, 0444);
module_param(lost, uint, 0444);
module_param(bounced, uint, 0444);

struct wire {
	struct hrtimer timer;
	unsigned int number;
	bool bounces;
	int value;
};

static struct wire wires[WIRES];
static struct gpio_chip chip;
static bool is_gone;

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	struct wire *wire = container_of(timer, struct wire, timer);

	generic_handle_domain_irq(chip.irq.domain, WIRES + wire->number);
	if (!wire->bounces)
		return HRTIMER_NORESTART;
	wire->bounces = false;
	bounced++;
	hrtimer_forward_now(timer, ns_to_ktime(BOUNCE_NS));
	return HRTIMER_RESTART;
}

static void set(struct gpio_chip *gc, unsigned int line, int value)
{
	struct wire *wire = &wires[line % WIRES];
	bool rises = value && !wire->value;

	wire->value = value;
	if (!rises || READ_ONCE(is_gone))
		return;
	edges++;
	if (lose_every && edges % lose_every == 0) {
		lost++;
		return;
	}
	wire->bounces = bounce_every && edges % bounce_every == 0;
	hrtimer_start(&wire->timer, ns_to_ktime(delay_ns), HRTIMER_MODE_REL_HARD);
}

static int get(struct gpio_chip *gc, unsigned int line)
{
	return wires[line % WIRES].value;
}

static int get_direction(struct gpio_chip *gc, unsigned int line)
{
	return line < WIRES ? GPIO_LINE_DIRECTION_OUT : GPIO_LINE_DIRECTION_IN;
}

static int direction_input(struct gpio_chip *gc, unsigned int line)
{
	return line < WIRES ? -EINVAL : 0;
}

static int direction_output(struct gpio_chip *gc, unsigned int line, int value)
{
	if (line >= WIRES)
		return -EINVAL;
	set(gc, line, value);
	return 0;
}

static void mask(struct irq_data *data)
{
	gpiochip_disable_irq(irq_data_get_irq_chip_data(data), irqd_to_hwirq(data));
}

static void unmask(struct irq_data *data)
{
	gpiochip_enable_irq(irq_data_get_irq_chip_data(data), irqd_to_hwirq(data));
}

static int set_type(struct irq_data *data, unsigned int type)
{
	return type == IRQ_TYPE_EDGE_RISING ? 0 : -EINVAL;
}

static const struct irq_chip irqs = {
	.name = "lines",
	.irq_mask = mask,
	.irq_unmask = unmask,
	.irq_set_type = set_type,
	.flags = IRQCHIP_IMMUTABLE,
	GPIOCHIP_IRQ_RESOURCE_HELPERS,
};

static const char *const names[2 * WIRES] = { "out0", "out1", "in0", "in1" };

static struct gpio_chip chip = {
	.label = "lines",
	.owner = THIS_MODULE,
	.base = -1,
	.ngpio = 2 * WIRES,
	.names = names,
	.get = get,
	.set = set,
	.get_direction = get_direction,
	.direction_input = direction_input,
	.direction_output = direction_output,
};

/* Removes the chip, as if it was unplugged; no timer may use it then. */
static void remove(void)
{
	unsigned int number;

	if (is_gone)
		return;
	WRITE_ONCE(is_gone, true);
	for (number = 0; number < WIRES; number++)
		hrtimer_cancel(&wires[number].timer);
	gpiochip_remove(&chip);
}

static int set_gone(const char *value, const struct kernel_param *parameter)
{
	remove();
	return 0;
}

static const struct kernel_param_ops gone_ops = { .set = set_gone, .get = param_get_bool };
module_param_cb(gone, &gone_ops, &is_gone, 0644);
MODULE_PARM_DESC(gone, "the chip was removed; writing anything removes it for good");

static int __init begin(void)
{
	unsigned int number;

	for (number = 0; number < WIRES; number++) {
		wires[number].number = number;
		hrtimer_init(&wires[number].timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
		wires[number].timer.function = on_timer;
	}
	gpio_irq_chip_set_chip(&chip.irq, &irqs);
	chip.irq.handler = handle_simple_irq;
	chip.irq.default_type = IRQ_TYPE_NONE;
	return gpiochip_add_data(&chip, NULL);
}

static void __exit end(void)
{
	remove();
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("A GPIO chip whose outputs are wired to its inputs, for tests");
MODULE_LICENSE("GPL");
