// Bytes that all requests hold together, within a limit: of bodies, or of answers. A key may hold as much
// as is left for others. So one that takes what it can gets half, two get a third each, and there is
// always room for one more; without keys everybody shares the whole. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace vitrine {

class ByteBound {
 public:
  // Whose bytes, and how many; gives them back at its end.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : bound_(std::exchange(other.bound_, nullptr)),
          tenant_(std::move(other.tenant_)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&&) = delete;
    ~Share() { release(); }
    std::int64_t bytes() const { return bytes_; }
    void release() {
      if (bound_ != nullptr) bound_->give_back(tenant_, std::exchange(bytes_, 0));
    }

   private:
    friend class ByteBound;
    ByteBound* bound_ = nullptr;
    std::string tenant_;
    std::int64_t bytes_ = 0;
  };

  // The share becomes `bytes`, or nothing, and false, where that would be over the limit.
  bool set(Share& share, const std::string& tenant, std::int64_t bytes, std::int64_t most) {
    if (bytes <= share.bytes_) {
      if (share.bytes_ > 0) give_back(share.tenant_, share.bytes_ - bytes);
      share.bytes_ = bytes;
      return true;
    }
    share.release();
    std::lock_guard lock(mutex_);
    if (!fits(tenant, bytes, most)) return false;
    take(share, tenant, bytes);
    return true;
  }
  // In any case.
  Share take(const std::string& tenant, std::int64_t bytes) {
    Share out;
    std::lock_guard lock(mutex_);
    take(out, tenant, bytes);
    return out;
  }
  bool would_fit(const std::string& tenant, std::int64_t bytes, std::int64_t most) const {
    std::lock_guard lock(mutex_);
    return fits(tenant, bytes, most);
  }
  std::int64_t total() const {
    std::lock_guard lock(mutex_);
    return total_;
  }

 private:
  bool fits(const std::string& tenant, std::int64_t bytes, std::int64_t most) const {
    if (bytes > most - total_) return false;
    if (tenant.empty()) return true;
    auto held = held_.find(tenant);
    const std::int64_t own = (held == held_.end() ? 0 : held->second) + bytes;
    return own <= most - total_ - bytes + kSmall;
  }
  void take(Share& share, const std::string& tenant, std::int64_t bytes) {
    share.tenant_ = tenant;
    held_[tenant] += bytes;
    total_ += bytes;
    share.bound_ = this;
    share.bytes_ = bytes;
  }
  void give_back(const std::string& tenant, std::int64_t bytes) {
    std::lock_guard lock(mutex_);
    total_ -= bytes;
    auto held = held_.find(tenant);
    if (held != held_.end() && (held->second -= bytes) <= 0) held_.erase(held);
  }

  // So that limits as small as a request still let one in.
  static constexpr std::int64_t kSmall = 64 << 10;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::int64_t total_ = 0;
  std::map<std::string, std::int64_t> held_;  // by tenant
};

}  // namespace vitrine
