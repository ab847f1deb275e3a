#include "libcore/run/check_record.h"

#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace hf {

CheckRecord skipped_check(std::string check, std::string subject, std::string variant,
                          std::string reason) {
    CheckRecord record;
    record.check = std::move(check);
    record.subject = std::move(subject);
    record.variant = std::move(variant);
    record.skipped = true;
    record.reason = std::move(reason);
    return record;
}

Comparison::Comparison(std::string check, std::string subject, std::string variant) {
    record_.check = std::move(check);
    record_.subject = std::move(subject);
    record_.variant = std::move(variant);
}

void Comparison::add(double got, double reference, double allowed, double scale,
                     const Where& where) {
    has_reference_ = has_reference_ || reference != 0;
    judge(std::fabs(got - reference), allowed, scale, where);
}

void Comparison::add_twins(float got, float reference, const Where& where) {
    has_reference_ = has_reference_ || reference != 0;
    const bool same = std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(reference) &&
                      !std::isnan(reference);
    const double error = std::fabs(double(got) - double(reference));
    constexpr double kSmallest = std::numeric_limits<float>::denorm_min();
    judge(same ? 0 : error == 0 ? kSmallest : error, 0, 0, where);  // 0 and -0 differ too
}

void Comparison::judge(double error, double allowed, double scale, const Where& where) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    record_.n += 1;
    failed_ += !(error <= allowed);
    const double share = allowed > 0 ? error / allowed : error == 0 ? 0 : kInfinity * error;
    const bool is_worse = !std::isnan(worst_share_) && !(share <= worst_share_);
    if (record_.n > 1 && !is_worse) return;
    worst_share_ = share;
    record_.worst = scale > 0 ? error / scale : error;
    record_.tol = scale > 0 ? allowed / scale : allowed;
    record_.where = where();
}

CheckRecord Comparison::record() const {
    CheckRecord record = record_;
    if (record.n == 0)
        record.reason = "nothing was compared";
    else if (failed_ > 0)
        record.reason =
            fmt::format("{} of {} values are not within what is allowed", failed_, record.n);
    else if (!has_reference_)
        record.reason = "all references are zero, so nothing was shown";
    record.pass = record.reason.empty();
    return record;
}

}  // namespace hf
