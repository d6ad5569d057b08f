// A warp's ring of units in shared memory, filled ahead from global memory.
//
// From Hopper on one lane starts a bulk copy per unit, which counts its bytes on a barrier of the
// slot; before, every lane copies its share by cp.async.
#pragma once

#include "kernels/cuda/instructions.cuh"

namespace vitrine::cuda {

inline constexpr int kMaxRing = 8;

// Bytes of shared memory in front of the slots of all warps of a block.
constexpr int ring_barrier_bytes(int warps) { return warps * kMaxRing * 8; }

template <int kWords>
class Ring {
 public:
  // `barriers`: kMaxRing of 8 bytes, this warp's. Whole warps call everything.
  __device__ Ring(std::uint32_t* slots, std::uint64_t* barriers, int count, int lane)
      : slots_(slots), count_(count), lane_(lane) {
#if __CUDA_ARCH__ >= 900
    barriers_ = static_cast<unsigned>(__cvta_generic_to_shared(barriers));
    if (lane < count)
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barriers_ + 8 * lane) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
#endif
  }

  // Starts the copies of units.at(n) with begin <= n < end into the slots of these numbers. All
  // slots are filled so, in order, before the first is read.
  template <typename Units>
  __device__ void fill(int begin, int end, const Units& units) {
#if __CUDA_ARCH__ >= 900
    if (lane_ >= begin && lane_ < end) copy(units.at(lane_), lane_);  // a lane a unit
#else
    for (int n = begin; n < end; ++n) copy(units.at(n), n);
#endif
  }

  // Starts the copy of the next unit into the slot that was read last; nothing if `from` is null.
  __device__ void fetch(const std::uint32_t* from) {
#if __CUDA_ARCH__ >= 900
    if (lane_ == 0)
#endif
      copy(from, in_);
    in_ = in_ + 1 == count_ ? 0 : in_ + 1;
  }

  // The next unit, once it is there, visible to the whole warp.
  __device__ const std::uint32_t* wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(barriers_ + 8 * out_),
        "r"(phase_)
        : "memory");
#else
    wait_for_groups();
    __syncwarp();
#endif
    const std::uint32_t* unit = slots_ + out_ * kWords;
    if (++out_ == count_) out_ = 0, phase_ ^= 1;
    return unit;
  }

 private:
  // One lane, or before Hopper all of them.
  __device__ void copy(const std::uint32_t* from, int slot) {
#if __CUDA_ARCH__ >= 900
    if (!from) return;
    unsigned barrier = barriers_ + 8 * slot;
    auto to = static_cast<unsigned>(__cvta_generic_to_shared(slots_ + slot * kWords));
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "n"(kWords * 4)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(to),
        "l"(from), "n"(kWords * 4), "r"(barrier)
        : "memory");
#else
    if (from)
      for (int i = lane_; i < kWords / 4; i += 32)
        copy_async16(slots_ + slot * kWords + i * 4, from + i * 4);
    copy_commit();
#endif
  }
  __device__ void wait_for_groups() const {
    switch (count_) {
      case 2:
        return copy_wait<1>();
      case 3:
        return copy_wait<2>();
      case 4:
        return copy_wait<3>();
      case 5:
        return copy_wait<4>();
      case 6:
        return copy_wait<5>();
      case 7:
        return copy_wait<6>();
      default:
        return copy_wait<7>();
    }
  }

  std::uint32_t* slots_;
  unsigned barriers_ = 0;
  int count_, lane_, in_ = 0, out_ = 0;
  unsigned phase_ = 0;
};

}  // namespace vitrine::cuda
