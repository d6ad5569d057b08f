// Backend: a device and the ops on it, and the list of those that this build has. `ref` is the
// specification of every op, in plain C++.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "kernels/device.h"
#include "kernels/ops.h"

namespace vitrine {

class Backend : public Device, public Ops {
 public:
  // Runs `calls`, which call ops only. The same key promises the same ops on the same tensors, so a
  // backend may record the calls and replay them: then `calls` is not called, and take_work()
  // counts what it did when it last was. Op times have what was called only.
  void repeat(std::uint64_t key, const std::function<void()>& calls);

 protected:
  virtual void repeat_(std::uint64_t /*key*/, const std::function<void()>& calls) { calls(); }

 private:
  std::unordered_map<std::uint64_t, Work> repeated_;  // by key
};

struct BackendOptions {
  int threads = 0;  // cpu: 0 takes as many as this process may use
  // cpu: "avx2", "avx512", "vnni", "bf16", "amx"; empty: the best there is.
  std::string isa = {};
  // cuda: one kernel and one order of summation for every number of rows. The others always do so.
  bool deterministic = false;
  // cuda: every op waits until it is done, so that the message of a failure names it.
  bool synchronous = false;
  int device = 0;  // which of the backend's devices; cpu and ref have one
};

// One per folder kernels/<name>/, listed by CMake.
struct BackendDef {
  const char* name;
  int preference;  // "auto" takes the usable backend with the highest
  // kUnavailable says why this machine cannot use it ("auto" tries the next); other errors say what
  // is wrong with the options.
  Result<std::unique_ptr<Backend>> (*create)(const BackendOptions& options);
};
std::span<const BackendDef* const> all_backends();
// Folders that this build left out, and why: "cuda: not part of this build, ...". May be empty.
std::span<const char* const> absent_backends();

// For BackendDef::create: an error where options.device is not one of `devices`.
Status check_device(const char* backend, const BackendOptions& options, int devices);

// `name`: a backend's name or "auto".
Result<std::unique_ptr<Backend>> create_backend(const std::string& name,
                                                const BackendOptions& options);

}  // namespace vitrine
