#include "kernels/cuda/program_attention.cuh"

namespace vitrine::cuda {
namespace {

// ---- on the device ----

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

// Where a warp's ring is, and how far the two sides are. A unit that does not fit behind the one
// before it begins at the ring's start; both sides see that alike.
struct Ring {
  std::byte* data;
  unsigned barriers;         // one a unit that is on its way, of kRingBarriers in turn
  volatile unsigned* freed;  // bytes that were read, in all
  int bytes;

  __device__ Ring(const ProgramShape& shape, std::byte* shared, int warp)
      : data(shared + shape.ring + warp * shape.ring_bytes),
        barriers(static_cast<unsigned>(__cvta_generic_to_shared(shared)) +
                 warp * kRingBarriers * 8),
        freed(reinterpret_cast<unsigned*>(shared + kProgramFreed) + warp),
        bytes(shape.ring_bytes) {}
};

__device__ inline int unit_bytes(int dtype) {
  switch (dtype) {
    case 2:
      return WeightQ4_0::kWords * 4;
    case 8:
      return WeightQ8_0::kWords * 4;
    case 12:
      return WeightQ4_K::kWords * 4;
    case 13:
      return WeightQ5_K::kWords * 4;
    case 14:
      return WeightQ6_K::kWords * 4;
    default:
      return WeightBF16::kWords * 4;
  }
}

// The side that fills: one lane of the last warp for every other warp. It goes through the units of
// that warp, of all products of the program one after the other, and copies ahead.
class Filler {
 public:
  // `used`: whether the lane has a warp at all.
  __device__ Filler(const ProgramShape& shape, std::byte* shared, int warp, bool used)
      : ring_(shape, shared, warp), warp_(warp), in_(shape.code), end_(in_ + shape.count) {
    if (!used) return;
    for (int i = 0; i < kRingBarriers; ++i)
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(ring_.barriers + 8 * i) : "memory");
    *ring_.freed = 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    open();
  }
  __device__ bool done() const { return at_ == nullptr; }
  // Starts a copy if there is room for it.
  __device__ bool step() {
    if (done()) return false;
    bool wraps = put_ + unit_bytes_ > ring_.bytes;
    unsigned needed = unit_bytes_ + (wraps ? ring_.bytes - put_ : 0);
    if (filled_ + needed - *ring_.freed > static_cast<unsigned>(ring_.bytes)) return false;
    if (wraps) put_ = 0;
    unsigned barrier = ring_.barriers + 8 * (issued_++ % kRingBarriers);
    auto to = static_cast<unsigned>(__cvta_generic_to_shared(ring_.data + put_));
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(unit_bytes_)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(to),
        "l"(at_), "r"(unit_bytes_), "r"(barrier)
        : "memory");
    put_ += unit_bytes_, filled_ += needed;
    advance();
    return true;
  }

 private:
  // Goes to the warp's first unit of the next product in which it has one.
  __device__ void open() {
    at_ = nullptr;
    for (; in_ != end_; ++in_) {
      if (in_->dtype < 0) continue;
      int warps = kProgramWarps / in_->groups, units = in_->job.units;
      begin_ = units * (warp_ % warps) / warps, stop_ = units * (warp_ % warps + 1) / warps;
      tile_ = static_cast<int>(blockIdx.x) * in_->groups + warp_ / warps;
      if (begin_ == stop_ || tile_ >= in_->job.tiles) continue;
      unit_bytes_ = unit_bytes(in_->dtype);
      unit_ = begin_, sub_ = 0;
      seek();
      return;
    }
  }
  __device__ void seek() {
    const Job& job = in_->job;
    int local = tile_;
    const Segment& s = job.glu ? job.segment[sub_] : segment_of(job, local);
    at_ = reinterpret_cast<const std::byte*>(s.w) +
          (std::int64_t{local} * job.units + begin_) * unit_bytes_;
  }
  __device__ void advance() {
    at_ += unit_bytes_;
    if (++unit_ < stop_) return;
    unit_ = begin_;
    if (in_->job.glu && sub_ == 0)
      sub_ = 1;
    else
      sub_ = 0, tile_ += static_cast<int>(gridDim.x) * in_->groups;
    if (tile_ < in_->job.tiles) return seek();
    ++in_;
    open();
  }

  Ring ring_;
  int warp_;
  const Instruction *in_, *end_;
  const std::byte* at_ = nullptr;  // null after the last
  int begin_, stop_, tile_, sub_, unit_, unit_bytes_;
  unsigned issued_ = 0, filled_ = 0;
  int put_ = 0;
};

// The side that reads: a warp.
class Reader {
 public:
  __device__ Reader(const ProgramShape& shape, std::byte* shared)
      : ring_(shape, shared, threadIdx.x / 32) {}
  // The next unit, once it is there, visible to the whole warp.
  __device__ const std::uint32_t* take(int bytes) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(ring_.barriers + 8 * (taken_ % kRingBarriers)),
        "r"(taken_ / kRingBarriers % 2)
        : "memory");
    ++taken_;
    if (at_ + bytes > ring_.bytes) freed_ += ring_.bytes - at_, at_ = 0;
    return reinterpret_cast<const std::uint32_t*>(ring_.data + at_);
  }
  // After take(), when the whole warp has read the unit.
  __device__ void release(int bytes) {
    at_ += bytes, freed_ += bytes;
    if (threadIdx.x % 32 == 0) *ring_.freed = freed_;
  }

 private:
  Ring ring_;
  unsigned taken_ = 0, freed_ = 0;
  int at_ = 0;
};

// This block is through with an op.
__device__ inline void arrive(const ProgramShape& shape) {
  sync_threads<kProgramThreads>();
  if (threadIdx.x != 0) return;
  __threadfence();
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(shape.barrier) : "memory");
}

// Waits until `done` ops are through, of all blocks.
__device__ inline void wait_for(const ProgramShape& shape, int done) {
  if (threadIdx.x == 0) {
    unsigned target = static_cast<unsigned>(done) * gridDim.x, now;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                   : "=r"(now)
                   : "l"(shape.barrier)
                   : "memory");
    } while (now < target);
  }
  sync_threads<kProgramThreads>();
}

template <typename F, bool kOneRow>
__device__ void run_product(const ProgramShape& shape, const Instruction& in, Reader& reader,
                            std::byte* shared, int done) {
  constexpr bool kOne = kOneRow && F::kHalf;
  using X = FewX<!F::kHalf, kOne>;
  using Few = FewMemory<F, 1>;
  __shared__ float inverse[8];
  const Job& job = in.job;
  int tokens = kOneRow ? 1 : shape.tokens, cols = job.units * F::kCols, subs = job.glu ? 2 : 1;
  const ProductMemory<F> memory(job, tokens);
  std::byte* work = shared + shape.work;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int token_bytes = Few::token_bytes(cols), token_sums = Few::token_sums(cols);
  auto* scratch = reinterpret_cast<float*>(shared + kProgramScratch) + warp * F::kScratch;
  auto* sums = reinterpret_cast<float*>(work + memory.sums);
  auto* reduce = reinterpret_cast<float*>(work + memory.reduce);
  convert_rows<F, kProgramWarps, kFewVectors / kProgramThreads, true>(
      job, tokens, cols, work, token_bytes, sums, token_sums, inverse,
      [&] { wait_for(shape, done); });
  sync_threads<kProgramThreads>();

  int column = lane / 4, token = min(X::kPaired ? column / 2 : column, tokens - 1);
  auto* my_x = reinterpret_cast<const uint2*>(work + token * token_bytes) +
               (X::kPaired ? lane % 4 * 2 + column % 2 : lane % 4);
  int first_token = min(X::kPaired ? lane % 4 : 2 * (lane % 4), tokens - 1);
  const float* s0 = sums + first_token * token_sums;
  const float* s1 = sums + min(first_token + 1, tokens - 1) * token_sums;
  int warps = kProgramWarps / in.groups, group = warp / warps, part = warp % warps;
  int begin = job.units * part / warps, end = job.units * (part + 1) / warps, buffer = 0;
  int stride = static_cast<int>(gridDim.x) * in.groups, tiles = job.tiles;
  for (int tile = static_cast<int>(blockIdx.x) * in.groups + group; tile < tiles;
       tile += stride, buffer ^= 1) {
    float* buffers = reduce + (buffer * kProgramWarps + group * warps) * subs * 16 * tokens;
#pragma unroll 1
    for (int sub = 0; sub < subs; ++sub) {
      float acc[1][1][4] = {};
#pragma unroll 1
      for (int u = begin; u < end; ++u) {
        const std::uint32_t* const unit[1] = {reader.take(F::kWords * 4)};
        X x{my_x + u * (F::kCols / 16) * (X::kPaired ? 8 : 4), s0 + u * (F::kCols / 32),
            s1 + u * (F::kCols / 32)};
        multiply_unit<F, 1, 1>(unit, scratch, x, acc, lane);
        __syncwarp();
        reader.release(F::kWords * 4);
      }
      store_sums<X, (F::kGroup < 64)>(buffers + (part * subs + sub) * 16 * tokens, acc[0][0],
                                      tokens, lane);
    }
    group_barrier(group, warps * 32);
    if (part != (warps > 1 ? buffer : 0)) continue;
    if (job.glu)
      finish_tile<2>(job, tile, tokens, warps, buffers, F::kHalf ? inverse : nullptr);
    else
      finish_tile<1>(job, tile, tokens, warps, buffers, F::kHalf ? inverse : nullptr);
  }
}

template <bool kOneRow>
__device__ void run_instruction(const ProgramShape& shape, int i, Reader& reader,
                                std::byte* shared) {
  const Instruction& in = shape.code[i];
  switch (in.dtype) {
    case 1:
      return run_product<WeightF16, kOneRow>(shape, in, reader, shared, i);
    case 2:
      return run_product<WeightQ4_0, kOneRow>(shape, in, reader, shared, i);
    case 8:
      return run_product<WeightQ8_0, kOneRow>(shape, in, reader, shared, i);
    case 12:
      return run_product<WeightQ4_K, kOneRow>(shape, in, reader, shared, i);
    case 13:
      return run_product<WeightQ5_K, kOneRow>(shape, in, reader, shared, i);
    case 14:
      return run_product<WeightQ6_K, kOneRow>(shape, in, reader, shared, i);
    case 30:
      return run_product<WeightBF16, kOneRow>(shape, in, reader, shared, i);
    default:
      break;
  }
  const AttentionTask& a = in.attention;
  auto* work = reinterpret_cast<float*>(shared + shape.work);
  wait_for(shape, i);
  bool half = a.cache.shape.dtype == DType::kF16;
  if (a.cache.shape.head_dim == 64)
    half ? run_attention<64, true>(a, work) : run_attention<64, false>(a, work);
  else
    half ? run_attention<128, true>(a, work) : run_attention<128, false>(a, work);
}

#endif

template <bool kOneRow>
__global__ void __launch_bounds__(kProgramThreads + kFillThreads, 1)
    program_kernel(const __grid_constant__ ProgramShape shape) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) std::byte shared[];
  if (threadIdx.x >= kProgramThreads) {
    int warp = static_cast<int>(threadIdx.x) - kProgramThreads;
    bool used = warp < kProgramWarps;
    Filler filler(shape, shared, used ? warp : 0, used);
    __syncthreads();
    asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    if (warp >= 32) return;
    while (__any_sync(0xffffffff, !filler.done()))
      if (!__any_sync(0xffffffff, filler.step())) __nanosleep(40);
    return;
  }
  __syncthreads();
  asm volatile("setmaxnreg.inc.sync.aligned.u32 112;");
  Reader reader(shape, shared);
  pdl_wait();
#pragma unroll 1
  for (int i = 0; i < shape.count; ++i) {
    run_instruction<kOneRow>(shape, i, reader, shared);
    if (i + 1 < shape.count) arrive(shape);
  }
  if (threadIdx.x == 0 && atomicAdd(shape.barrier + 1, 1) == gridDim.x - 1)
    shape.barrier[0] = 0, shape.barrier[1] = 0;
#endif
}

// ---- on the host ----

// Rings of less are not worth it.
constexpr int kLeastRing = 64 << 10;
constexpr int kScaleBytes = kProgramWarps * 256 * 4;

// All that a block can have, but for what the kernel declares.
int dynamic_bytes(const Context& c) { return c.shared_bytes - 2048; }
int fixed_bytes(bool scratch) { return kProgramScratch + (scratch ? kScaleBytes : 0); }

}  // namespace

struct Program::Rope {
  RopeStore r;
  KvCache cache;
  const std::int32_t* slots;
};

void flush_program(const Context& c) {
  if (c.program) c.program->flush();
}

bool prepare_programs(Context& c) {
  if (c.capability < 90) return false;
  for (auto* kernel : {program_kernel<true>, program_kernel<false>}) {
    check(
        c,
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic_bytes(c)),
        "shared memory");
  }
  return true;
}

Program::Program(Context& c, std::byte* memory, std::int64_t bytes)
    : c_(c), memory_(memory), room_(bytes / static_cast<std::int64_t>(sizeof(Instruction))) {}
Program::~Program() = default;

void Program::push(Instruction in, int work_bytes, bool scratch, std::function<void()> alone) {
  code_.push_back(in);
  alone_.push_back(std::move(alone));
  work_bytes_ = std::max(work_bytes_, work_bytes);
  scratch_ = scratch_ || scratch;
}

bool Program::add(const Job& given, DType dtype) {
  if (dtype == DType::kF32 || given.K % 4 != 0 ||
      static_cast<std::int64_t>(code_.size()) >= room_ || rope_)
    return false;
  Instruction in{};
  in.dtype = static_cast<int>(dtype), in.job = given;
  int work = 0, most = 0;
  bool scratch = false;
  with_format(c_, dtype, [&](auto format) {
    using F = decltype(format);
    in.job.units = (given.K + F::kCols - 1) / F::kCols;
    int tokens = few_tokens(given.T);
    most = F::kHalf ? 8 : 4, scratch = F::kScratch > 0;
    if (given.T > most || in.job.units > kFewVectors * 4 / F::kCols / tokens)
      most = 0;
    else
      work = ProductMemory<F>(in.job, tokens).total;
  });
  if (most == 0 || (rows_ != 0 && rows_ != given.T)) return false;
  int needs = fixed_bytes(scratch_ || scratch) + std::max(work, work_bytes_) + kLeastRing;
  if (needs > dynamic_bytes(c_)) return false;
  in.groups = choose_groups(c_, in.job, kProgramWarps);
  rows_ = given.T;
  push(in, work, scratch, [&c = c_, given, dtype] { launch_product(c, given, dtype); });
  return true;
}

bool Program::rope_store(const RopeStore& r, const KvCache& cache, const KvIndex& index) {
  const KvShape& s = cache.shape;
  std::int64_t sequences = index.row_offsets.dim(0) - 1;
  if ((s.head_dim != 64 && s.head_dim != 128) || s.dtype == DType::kF32 ||
      s.page_size % kProgramSlice != 0 || r.T != sequences || r.T > 8 || code_.empty() || rope_ ||
      r.H / s.kv_heads > kMostHeads || static_cast<std::int64_t>(code_.size()) >= room_)
    return false;
  int work = attention_bytes(s.head_dim, static_cast<int>(r.H / s.kv_heads));
  if (fixed_bytes(scratch_) + std::max(work, work_bytes_) + kLeastRing > dynamic_bytes(c_))
    return false;
  rope_ = std::make_unique<Rope>(Rope{r, cache, index.slots.i32()});
  return true;
}

bool Program::attention(float* out, const float* q, const KvCache& cache, const KvIndex& index,
                        const AttentionParams& params) {
  if (!rope_ || rope_->r.q != q || rope_->cache.data != cache.data) return false;
  const KvShape& s = cache.shape;
  Instruction in{};
  in.dtype = -1;
  in.attention = {};
  AttentionTask& a = in.attention;
  a.rope = rope_->r, a.cache = cache, a.slots = rope_->slots;
  a.positions = index.positions.i32(), a.block_table = index.block_table.i32();
  a.out = out, a.partial = reinterpret_cast<float*>(c_.workspace), a.tickets = c_.tickets;
  a.S = static_cast<int>(rope_->r.T), a.H = static_cast<int>(rope_->r.H), a.G = a.H / s.kv_heads;
  a.B = static_cast<int>(index.block_table.dim(1));
  a.window = params.window, a.scale = params.scale, a.softcap = params.softcap;
  auto rope = std::shared_ptr<Rope>(std::move(rope_));
  push(in, attention_bytes(s.head_dim, a.G), false, [&c = c_, rope, out, q, cache, index, params] {
    rope_store_kv(c, rope->r, rope->cache, rope->slots);
    cuda::attention(c, out, q, rope->r.T, rope->r.H, cache, index, params);
  });
  return true;
}

void Program::flush() {
  Program* self = std::exchange(c_.program, nullptr);  // launches from here on are not collected
  if (alone_.size() < 3) {
    for (const auto& op : alone_) op();
    code_.erase(code_.end() - static_cast<std::ptrdiff_t>(alone_.size()), code_.end());
  } else {
    ProgramShape shape{};
    shape.count = static_cast<int>(alone_.size());
    shape.code = reinterpret_cast<const Instruction*>(memory_) + code_.size() - alone_.size();
    shape.tokens = few_tokens(rows_);
    shape.work = fixed_bytes(scratch_);
    shape.ring = shape.work + (work_bytes_ + 127) / 128 * 128;
    auto* kernel = rows_ == 1 ? program_kernel<true> : program_kernel<false>;
    int dynamic = dynamic_bytes(c_);
    shape.ring_bytes = (dynamic - shape.ring) / kProgramWarps / 128 * 128;
    shape.barrier = c_.tickets + kTickets - 2;
    c_.op = "a program";
    launch(c_, kernel, dim3(static_cast<unsigned>(c_.sms)), kProgramThreads + kFillThreads,
           static_cast<std::size_t>(dynamic), shape);
  }
  alone_.clear();
  work_bytes_ = rows_ = 0, scratch_ = false;
  if (rope_) {
    Rope rope = *std::exchange(rope_, nullptr);
    rope_store_kv(c_, rope.r, rope.cache, rope.slots);
  }
  c_.program = self;
}

std::int64_t Program::upload() {
  auto bytes = static_cast<std::int64_t>(code_.size() * sizeof(Instruction));
  if (bytes > 0)
    check(c_,
          cudaMemcpyAsync(memory_, code_.data(), static_cast<std::size_t>(bytes),
                          cudaMemcpyHostToDevice, c_.stream),
          "a program");
  return bytes;
}

}  // namespace vitrine::cuda
