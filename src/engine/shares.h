// Whose a step's time was. A step serves many sequences at once, so its time is divided by a rule: an entry
// counts for the longer of its arithmetic and its reading, at the rates of the machine,
//
//   m = max(flops, flops_per_byte * (weight_bytes * rows / all rows + bytes of K and V))
//
// and shares are proportional to m. Padding rows have a share too, which is no sequence's. Rounded so that all of
// them sum to wall_ns exactly. What is divided is measured; how it is divided is this rule.
#pragma once

#include "engine/step_record.h"

namespace vitrine {

// Fills in the shares of a record that is complete otherwise, flops_per_byte included.
void share_time(StepRecord& record);

}  // namespace vitrine
