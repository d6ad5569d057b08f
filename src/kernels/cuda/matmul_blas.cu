#include "kernels/cuda/matmul_blas.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <map>
#include <tuple>

namespace vitrine::cuda {
namespace {

struct Library {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  cublasLtHandle_t handle = nullptr;
};

template <typename F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

Library load() {
  Library l;
  void* so = nullptr;
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"})
    if (!so) so = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  bool ok = so && find(so, "cublasLtCreate", l.create) &&
            find(so, "cublasLtMatmulDescCreate", l.desc_create) &&
            find(so, "cublasLtMatmulDescSetAttribute", l.desc_set) &&
            find(so, "cublasLtMatrixLayoutCreate", l.layout_create) &&
            find(so, "cublasLtMatmulPreferenceCreate", l.preference_create) &&
            find(so, "cublasLtMatmulPreferenceSetAttribute", l.preference_set) &&
            find(so, "cublasLtMatmulPreferenceDestroy", l.preference_destroy) &&
            find(so, "cublasLtMatmulAlgoGetHeuristic", l.heuristic) &&
            find(so, "cublasLtMatmul", l.matmul);
  if (!ok || l.create(&l.handle) != CUBLAS_STATUS_SUCCESS) l.handle = nullptr;
  return l;
}

const Library& library() {
  static const Library l = load();
  return l;
}

// Everything about a product but its addresses. In cublas' words: columns first, out^T = w x^T.
struct Plan {
  bool ok = false;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t w = nullptr, x = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algo;
};

Plan make_plan(const Library& l, const BlasProduct& p) {
  Plan plan;
  cudaDataType_t type = p.half ? CUDA_R_16F : CUDA_R_16BF;
  cublasOperation_t transpose = CUBLAS_OP_T;
  auto N = static_cast<std::uint64_t>(p.N), T = static_cast<std::uint64_t>(p.T),
       K = static_cast<std::uint64_t>(p.K);
  plan.ok = l.desc_create(&plan.desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
            l.desc_set(plan.desc, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof(transpose)) ==
                CUBLAS_STATUS_SUCCESS &&
            l.layout_create(&plan.w, type, K, N, p.K) == CUBLAS_STATUS_SUCCESS &&
            l.layout_create(&plan.x, type, K, T, p.K) == CUBLAS_STATUS_SUCCESS &&
            l.layout_create(&plan.out, CUDA_R_32F, N, T, p.ld_out) == CUBLAS_STATUS_SUCCESS;
  cublasLtMatmulPreference_t preference = nullptr;
  if (!plan.ok || l.preference_create(&preference) != CUBLAS_STATUS_SUCCESS) return {};
  auto bytes = static_cast<std::size_t>(p.workspace_bytes);
  l.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  plan.ok = l.heuristic(l.handle, plan.desc, plan.w, plan.x, plan.out, plan.out, preference, 1,
                        &result, &found) == CUBLAS_STATUS_SUCCESS &&
            found > 0;
  plan.algo = result.algo;
  l.preference_destroy(preference);
  return plan;
}

}  // namespace

bool have_blas() { return library().handle != nullptr; }

bool blas_product(Context& c, const BlasProduct& p) {
  const Library& l = library();
  if (!l.handle) return false;
  // A few per model and number of rows; they live as long as the process.
  static std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>, Plan>
      plans;
  auto [at, made] = plans.try_emplace({p.T, p.N, p.K, p.ld_out, p.half});
  Plan& plan = at->second;
  if (made) plan = make_plan(l, p);
  if (!plan.ok) return false;
  float alpha = 1, beta = p.add ? 1 : 0;
  cublasStatus_t status =
      l.matmul(l.handle, plan.desc, &alpha, p.w, plan.w, p.x, plan.x, &beta, p.add ? p.add : p.out,
               plan.out, p.out, plan.out, &plan.algo, p.workspace,
               static_cast<std::size_t>(p.workspace_bytes), c.stream);
  if (status != CUBLAS_STATUS_SUCCESS) fail(c, cudaErrorUnknown, "cublasLtMatmul");
  return true;
}

}  // namespace vitrine::cuda
