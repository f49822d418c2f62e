#pragma once

#include <string>

#include "training/adapter/manifest.h"

namespace molly::training {

// A picture of the losses over the steps, as SVG: axes with round numbers, a legend, one line for training and one for
// held-out loss. Points that are no numbers leave a gap.
std::string plot_loss(const LossCurves& curves);

}  // namespace molly::training
