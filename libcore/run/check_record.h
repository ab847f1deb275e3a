// CheckRecord: the outcome of one check. Comparison: what leads to it, with the rules that keep a
// check from passing by accident.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace hf {

struct CheckRecord {
    std::string check;    // what was compared: "dot", "twins", ...
    std::string subject;  // a format, or the block of a rotation
    std::string variant;  // "avx2/f32"
    uint64_t n = 0;       // values compared
    double worst = 0;   // the error that came nearest to what is allowed, or went furthest past it
    double tol = 0;     // what was allowed there; 0: the same bits
    std::string where;  // the value with that error
    bool pass = false;
    bool skipped = false;
    std::string reason;  // why it was skipped, or failed

    std::string name() const { return check + "/" + subject + "/" + variant; }
};

/// Who hears of records as they are made.
using OnRecord = std::function<void(const CheckRecord&)>;

/// A check that cannot be made here.
CheckRecord skipped_check(std::string check, std::string subject, std::string variant,
                          std::string reason);

/// Where a value stands, told only of the worst one.
using Where = std::function<std::string()>;

/// Takes values and what they should be, one by one.
///
/// An error counts as too large unless it is known to be small enough, so a NaN on either side
/// fails. A check without values fails, and so does one whose references are all zero: then a
/// function that does nothing would pass.
class Comparison {
  public:
    Comparison(std::string check, std::string subject, std::string variant);

    /// |got - reference| may be `allowed`. The record holds both divided by `scale`, unless that is
    /// zero.
    void add(double got, double reference, double allowed, double scale, const Where& where);

    /// Every bit must agree.
    void add_twins(float got, float reference, const Where& where);

    CheckRecord record() const;

  private:
    void judge(double error, double allowed, double scale, const Where& where);

    CheckRecord record_;
    double worst_share_ = 0;  // of what was allowed
    uint64_t failed_ = 0;
    bool has_reference_ = false;  // that is not zero
};

}  // namespace hf
