//! The values of a chain that change with ramps.

use super::{parameter::Parameter, settings::Settings, smooth::Smooth};
use crate::convert::db_to_gain;

/// The values that change with ramps. Those of switches are 0 to 1, the share of the stage in the output.
#[derive(Debug)]
pub struct Gains {
    pub input: Smooth,
    /// Series/parallel mix: 0 feeds the second model the output of the first, 1 the input.
    pub parallel: Smooth,
    /// Shares of the models in their sum.
    pub shares: [Smooth; 2],
    pub drive_on: Smooth,
    pub models_on: Smooth,
    pub gate_on: Smooth,
    pub tone_on: Smooth,
    pub cabinet: Smooth,
    pub cabinet_on: Smooth,
    pub dc_on: Smooth,
    pub delay_on: Smooth,
    pub reverb_on: Smooth,
    pub reverb_ir_on: Smooth,
    pub reverb_ir_mix: Smooth,
    pub output: Smooth,
    pub limiter_on: Smooth,
    pub ceiling: Smooth,
}

impl Gains {
    pub fn new(rate_hz: f32) -> Self {
        let gain = || Smooth::new(0.0, rate_hz);
        Self {
            input: gain(),
            parallel: gain(),
            shares: [gain(), gain()],
            drive_on: gain(),
            models_on: gain(),
            gate_on: gain(),
            tone_on: gain(),
            cabinet: gain(),
            cabinet_on: gain(),
            dc_on: gain(),
            delay_on: gain(),
            reverb_on: gain(),
            reverb_ir_on: gain(),
            reverb_ir_mix: gain(),
            output: gain(),
            limiter_on: gain(),
            ceiling: gain(),
        }
    }

    /// Applies the settings, immediately or with ramps; `second` is the share of the second model.
    pub fn apply_settings(&mut self, settings: &Settings, second: f32, at_once: bool) {
        let on = |parameter| settings.get(parameter);
        let gain = |parameter| db_to_gain(settings.get(parameter));
        let [first_share, second_share] = &mut self.shares;
        let all = [
            (&mut self.input, gain(Parameter::InputGain)),
            (&mut self.parallel, f32::from(settings.is_parallel())),
            (first_share, 1.0 - second),
            (second_share, second),
            (&mut self.drive_on, on(Parameter::DriveOn)),
            (&mut self.models_on, on(Parameter::ModelsOn)),
            (&mut self.gate_on, on(Parameter::GateOn)),
            (&mut self.tone_on, on(Parameter::ToneOn)),
            (&mut self.cabinet, gain(Parameter::CabinetGain)),
            (&mut self.cabinet_on, on(Parameter::CabinetOn)),
            (&mut self.dc_on, on(Parameter::DcBlockOn)),
            (&mut self.delay_on, on(Parameter::DelayOn)),
            (&mut self.reverb_on, on(Parameter::ReverbOn)),
            (&mut self.reverb_ir_on, on(Parameter::ReverbIrOn)),
            (&mut self.reverb_ir_mix, settings.get(Parameter::ReverbIrMix)),
            (&mut self.output, gain(Parameter::OutputGain)),
            (&mut self.limiter_on, on(Parameter::LimiterOn)),
            (&mut self.ceiling, gain(Parameter::Ceiling)),
        ];
        for (value, target) in all {
            value.change_to(target, at_once);
        }
    }
}
