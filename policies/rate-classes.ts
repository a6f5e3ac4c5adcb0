/** Request limits by class: the defaults of the contract, each with the variable that overrides it. */

/** A limit. @property seconds length of the window. */
interface Limit {
  readonly count: number
  readonly seconds: number
}

/** All classes of limited requests. @property env variable that overrides the limit, as `count/seconds`. */
export const rateClasses = {
  mutations: { count: 150, seconds: 60, env: 'RATE_MUTATIONS' },
  key: { count: 600, seconds: 60, env: 'RATE_KEY' },
  account: { count: 1_200, seconds: 60, env: 'RATE_ACCOUNT' },
  stops: { count: 150, seconds: 60, env: 'RATE_STOPS' },
  gasless: { count: 12, seconds: 60, env: 'RATE_GASLESS' },
  rails: { count: 60, seconds: 60, env: 'RATE_RAILS' },
  reveals: { count: 10, seconds: 60, env: 'RATE_REVEALS' },
  devices: { count: 20, seconds: 600, env: 'RATE_DEVICES' },
  feedback: { count: 10, seconds: 60, env: 'RATE_FEEDBACK' },
  pay_pages: { count: 60, seconds: 60, env: 'RATE_PAY_PAGES' },
  fx: { count: 300, seconds: 60, env: 'RATE_FX' },
  funding: { count: 1, seconds: 3600, env: 'RATE_FUNDING' },
  guests: { count: 1_000, seconds: 3600, env: 'RATE_GUESTS' },
  authorizations: { count: 120, seconds: 60, env: 'RATE_AUTHORIZATIONS' },
  registrations: { count: 100, seconds: 3600, env: 'RATE_REGISTRATIONS' },
  sponsored: { count: 1_000, seconds: 86_400, env: 'RATE_SPONSORED' },
  otp_resend: { count: 1, seconds: 60, env: 'RATE_OTP_RESEND' },
  otp_destination: { count: 5, seconds: 3600, env: 'RATE_OTP_DESTINATION' },
  otp_ip: { count: 5, seconds: 3600, env: 'RATE_OTP_IP' },
  otp_country: { count: 500, seconds: 86_400, env: 'RATE_OTP_COUNTRY' },
  otp_total: { count: 5_000, seconds: 86_400, env: 'RATE_OTP_TOTAL' },
  messages: { count: 10, seconds: 3600, env: 'RATE_MESSAGES' },
  recovery: { count: 5, seconds: 3600, env: 'RATE_RECOVERY' },
} as const satisfies Record<string, Limit & { env: `RATE_${string}` }>

const COUNT_PER_SECONDS = /^([1-9]\d{0,6})\/([1-9]\d{0,6})$/

/** Parses a limit such as `150/60` (count/seconds, both from 1 to 9,999,999); undefined for invalid text. */
export function parseRateLimit(text: string): Limit | undefined {
  const match = COUNT_PER_SECONDS.exec(text.trim())
  return match === null ? undefined : { count: Number(match[1]), seconds: Number(match[2]) }
}
