// What a step cost in FLOPs and bytes, for its record and for the accounts of its sequences.
#pragma once

#include "engine/batch.h"
#include "engine/info.h"
#include "engine/memory_plan.h"
#include "engine/step_record.h"
#include "kernels/measures.h"

namespace vitrine {

// `work`: of the products that ran. A row of the forward pass costs as much as any other, and so
// does a row of the head; padding rows are charged to no sequence. Attention is counted from
// positions.
void count_cost(Batch& batch, const Work& work, const MemoryPlan& plan, const EngineInfo& info,
                StepRecord& record);

}  // namespace vitrine
