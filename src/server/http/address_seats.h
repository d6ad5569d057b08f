// How many connections an address has open. An IPv6 client owns a network of 64 bits at least, so
// all addresses of one count together.
#pragma once

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace vitrine {

// Thread-safe; outlives its seats.
class AddressSeats {
 public:
  using Client = std::array<unsigned char, 8>;  // IPv4, or the first half of IPv6

  // Of one connection, until the object ends; or none.
  class Seat {
   public:
    Seat() = default;
    Seat(AddressSeats& seats, const Client& client) : seats_(&seats), client_(client) {}
    Seat(Seat&& other) noexcept
        : seats_(std::exchange(other.seats_, nullptr)), client_(other.client_) {}
    Seat& operator=(Seat&&) = delete;
    ~Seat() {
      if (seats_ != nullptr) seats_->leave(client_);
    }
    explicit operator bool() const { return seats_ != nullptr; }

   private:
    AddressSeats* seats_ = nullptr;
    Client client_{};
  };

  // None when the address has `most` already, or without memory.
  Seat take(const boost::asio::ip::address& address, int most) {
    const Client client = client_of(address);
    std::lock_guard lock(mutex_);
    try {
      int& taken = taken_[client];
      if (taken >= most) return {};
      ++taken;
      return {*this, client};
    } catch (const std::bad_alloc&) {
      return {};
    }
  }

  static Client client_of(const boost::asio::ip::address& address) {
    Client out{};
    auto fill = [&out](const auto& bytes) {
      std::copy_n(bytes.begin(), std::min(bytes.size(), out.size()), out.begin());
    };
    if (address.is_v4())
      fill(address.to_v4().to_bytes());
    else if (address.to_v6().is_v4_mapped())
      fill(make_address_v4(boost::asio::ip::v4_mapped, address.to_v6()).to_bytes());
    else
      fill(address.to_v6().to_bytes());
    return out;
  }

 private:
  void leave(const Client& client) {
    std::lock_guard lock(mutex_);
    auto found = taken_.find(client);
    if (--found->second == 0) taken_.erase(found);
  }

  std::mutex mutex_;
  std::map<Client, int> taken_;  // guarded by mutex_; no zeros
};

}  // namespace vitrine
