/** What production cannot do without, and what contradicts it: all of it is said at once, before anything starts. */

type Given = Readonly<Record<string, string | undefined>>

/** What has no default in production. */
const needs = [
  'PUBLIC_ORIGIN',
  'DATABASE_URL',
  'CHAIN_RPC_URL',
  'CHAIN_SPONSOR_KEY',
  'CHAIN_OWNER_KEY',
  'X402_PAY_TO',
  'SESSION_SECRET',
  'DATA_KEY',
  'LITHIC_WEBHOOK_SECRET',
  'BRIDGE_WEBHOOK_PUBLIC_KEY',
] as const

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** What is missing or contradictory in production, one line each; nothing in the sandbox. */
export function productionComplaints(given: Given): string[] {
  if (given.MODE !== 'production') return []
  const missing = needs
    .filter((name) => given[name] === undefined)
    .map((name) => `${name}: missing, and production has no default for it`)
  return [...missing, ...contradictions(given)]
}

function contradictions(given: Given): string[] {
  const { PUBLIC_ORIGIN: origin = '', SESSION_SECRET: session, DATA_KEY: data, CHAIN: chain } = given
  const { CHAIN_SPONSOR_KEY: sponsor, CHAIN_OWNER_KEY: owner } = given
  const isPlain = URL.canParse(origin) && new URL(origin).protocol === 'http:'
  const isSame = (one: string | undefined, other: string | undefined) =>
    one !== undefined && one.toLowerCase() === other?.toLowerCase()
  return [
    isPlain && !LOOPBACK.has(new URL(origin).hostname)
      ? 'PUBLIC_ORIGIN: must be https in production; only a loopback address may be http'
      : [],
    isSame(session, data) ? 'DATA_KEY: must not be SESSION_SECRET: whoever learns one would have both' : [],
    isSame(sponsor, owner)
      ? 'CHAIN_OWNER_KEY: must not be CHAIN_SPONSOR_KEY: the one pays gas, the other owns wallets'
      : [],
    chain === undefined ? [] : `CHAIN: "${chain}" is a chain of the sandbox; production has CHAIN_RPC_URL`,
    given.SANDBOX_MARKET_HOURS === undefined
      ? []
      : 'SANDBOX_MARKET_HOURS: is for the sandbox; production has its broker’s hours',
    given.SMTP_URL !== undefined && given.SMTP_FROM === undefined
      ? 'SMTP_FROM: missing, and SMTP_URL needs it'
      : [],
  ].flat()
}
