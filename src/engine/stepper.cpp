#include "engine/stepper.h"

#include "base/process_clock.h"
#include "engine/cost.h"
#include "engine/shares.h"

namespace vitrine {
Stepper::Stepper(LoadedModel& loaded, Scheduler& scheduler, std::mutex& books, Records& records)
    : m_(loaded), scheduler_(scheduler), books_(books), records_(records) {
  const int flights = m_.options.commit_delay + 2;
  in_flight_.reserve(flights), spare_.reserve(flights);
  for (int i = 0; i < flights; ++i) {
    Flight& flight = spare_.emplace_back();
    flight.record.entries.reserve(m_.plan.sequences);
    flight.record.beams.reserve(m_.plan.sequences);
    flight.batch.reserve(m_.plan.sequences, m_.options.step_tokens,
                         static_cast<int>(m_.plan.groups.size()),
                         m_.options.spec == SpecMode::kOff ? 0 : m_.options.spec_tokens);
  }
}

bool Stepper::step() {
  Flight& flight = in_flight_.emplace_back(std::move(spare_.back()));
  spare_.pop_back();
  bool settle = plan(flight);
  if (flight.batch.empty()) {
    spare_.push_back(std::move(flight));
    in_flight_.pop_back();
    if (in_flight_.empty()) {
      follows_ = false;
      return false;
    }
    commit(0);
    return true;
  }
  settle = launch(flight) || settle;
  commit(settle ? 0 : m_.options.commit_delay);
  return true;
}

void Stepper::abandon() noexcept {
  for (Flight& flight : in_flight_) spare_.push_back(std::move(flight));
  in_flight_.clear();
  follows_ = false;
}

bool Stepper::plan(Flight& flight) {
  const std::int64_t start = process_ns();
  scheduler_.draft();
  scheduler_.speculator().tell();
  std::lock_guard lock(books_);
  if (!follows_ && in_flight_.size() == 1) scheduler_.ledger().wall_from(wall_from_ = start);
  records_.look(scheduler_.changes(), start);
  scheduler_.plan(flight.batch, Clock::now());
  records_.planned(scheduler_.changes(), scheduler_.blocked(), step_);
  flight.record.start_ns = start;
  flight.record.blocked = scheduler_.blocked();
  flight.record.plan_ns = process_ns() - start;
  return scheduler_.settle();
}

bool Stepper::launch(Flight& flight) {
  StepRecord& r = flight.record;
  const std::int64_t start = process_ns();
  if (m_.options.poison_pages) m_.runner->poison(flight.batch);
  m_.runner->run(flight.batch, step_, std::exchange(follows_, true));
  r.step = step_++;
  r.forward_ns = process_ns() - start;
  r.ops = m_.backend->take_op_times();
  flight.work = m_.backend->take_work();
  describe(flight.batch, r);
  flight.collected = false;
  if (m_.scorer->deferred()) return false;
  collect(flight);
  // The device does not know what the host draws.
  return m_.info.queues_steps;
}

// Waits for the step and takes its results.
void Stepper::collect(Flight& flight) {
  StepRecord& r = flight.record;
  const std::int64_t start = process_ns();
  const StepTimes times = m_.runner->wait(flight.batch);
  r.wait_ns = m_.info.queues_steps ? process_ns() - start : 0;
  m_.scorer->collect(flight.batch);
  r.sample_ns = process_ns() - start;
  for (const OpTime& op : m_.backend->take_op_times()) r.ops.push_back(op);
  r.device_ns = times.busy_ns, r.device_idle_ns = times.idle_ns;
  flight.work += m_.backend->take_work();
  count_cost(flight.batch, flight.work, m_.plan, m_.info, r);
  for (std::size_t i = 0; i < r.entries.size(); ++i) {
    const BatchEntry& e = flight.batch.entries[i];
    r.entries[i].flops = e.flops;
    r.entries[i].kv_read_bytes = e.kv_read_bytes, r.entries[i].kv_write_bytes = e.kv_write_bytes;
  }
  flight.collected = true;
}

// Commits until `keep` steps are left in flight.
void Stepper::commit(int keep) {
  while (static_cast<int>(in_flight_.size()) > keep) {
    Flight& flight = in_flight_.front();
    if (!flight.collected) collect(flight);
    StepRecord& r = flight.record;
    const std::int64_t start = process_ns();
    r.wall_from_ns = wall_from_;
    {
      std::lock_guard lock(books_);
      scheduler_.commit(flight.batch, r);
      r.cache_ns = scheduler_.ledger().take_prefix_ns();
      r.preempted = scheduler_.ledger().take_preempted();
      const std::int64_t end = process_ns();
      r.commit_ns = end - start;
      r.wall_from_ns = std::exchange(wall_from_, end);
      r.wall_ns = end - r.wall_from_ns;
      r.flops_per_byte = m_.info.flops_per_byte;
      share_time(r);
      scheduler_.settle(r);
      scheduler_.ledger().wall_from(wall_from_);
      records_.committed(r, scheduler_.changes());
    }
    spare_.push_back(std::move(flight));
    in_flight_.erase(in_flight_.begin());
  }
}

void Stepper::describe(const Batch& batch, StepRecord& r) const {
  r.prefill_tokens = r.decode_tokens = r.beam_rows = 0;
  r.entries.clear(), r.beams.clear();
  for (const BatchEntry& e : batch.entries) {
    (e.prefill ? r.prefill_tokens : r.decode_tokens) += e.count;
    if (e.sequence->beams) r.beam_rows += e.count;
    r.entries.push_back({.sequence = e.sequence->id,
                         .phase = e.prefill ? Phase::kPrefill : Phase::kDecode,
                         .first = e.first,
                         .tokens = e.count,
                         .sampled = e.draws > 0,
                         .again = e.again,
                         .slot = e.sequence->slot});
  }
  r.padding_rows = batch.rows_run - batch.tokens;
  r.running = scheduler_.running(), r.waiting = scheduler_.waiting();
  r.pages_copied = static_cast<int>(batch.copies.size());
  r.pages_used = r.pages_cached = 0;
  for (int g = 0; g < scheduler_.cache().groups(); ++g) {
    r.pages_used += scheduler_.cache().pool(g).used();
    r.pages_cached += scheduler_.cache().pool(g).cached();
  }
}

}  // namespace vitrine
