/** Limits of requests that are enabled, but too high to interfere. */
export const generousLimits = Object.fromEntries(
  [
    'MUTATIONS',
    'REVEALS',
    'KEY',
    'ACCOUNT',
    'GUESTS',
    'AUTHORIZATIONS',
    'REGISTRATIONS',
    'GASLESS',
    'FX',
    'RAILS',
    'FEEDBACK',
    'OTP_RESEND',
    'OTP_DESTINATION',
    'OTP_IP',
    'RECOVERY',
    'MESSAGES',
    'STOPS',
  ].map((name) => [`RATE_${name}`, '1000000/60']),
)
