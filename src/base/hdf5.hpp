#pragma once
/// \file
/// The HDF5 library as far as files of solutions and images need it: handles that close themselves, failures that are
/// exceptions.

#include <hdf5.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace solenoid::hdf5 {

/// A call of the library failed, or what it found is not what was expected.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The library is one caller's at a time (not all builds of it are safe for threads), and prints nothing.
class Session {
 public:
  Session() : lock_(guard()) {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

 private:
  static std::mutex& guard() {
    static std::mutex mutex;
    return mutex;
  }
  std::lock_guard<std::mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

/// What calls return if they do not fail. \throws Failure
template <class T>
T expect(T result, const std::string& what) {
  if (result < 0) throw Failure(what);
  return result;
}

class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  /// \throws Failure if there is none.
  Handle(hid_t id, Close close, const std::string& what) : id_(expect(id, what)), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }

  operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor): as functions of the library take it

 private:
  hid_t id_;
  Close close_;
};

}  // namespace solenoid::hdf5
