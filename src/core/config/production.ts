/** Checks required and contradictory variables of production, and reports all problems at once before startup. */

import { nodeVariables } from './chains.ts'

type Given = Readonly<Record<string, string | undefined>>

/** Variables without a default in production. */
const needs = (given: Given) => [
  'PUBLIC_ORIGIN',
  'DATABASE_URL',
  ...nodeVariables(given),
  'CHAIN_SPONSOR_KEY',
  'CHAIN_OWNER_KEY',
  'X402_PAY_TO',
  'SESSION_SECRET',
  'DATA_KEY',
  'LITHIC_WEBHOOK_SECRET',
  'BRIDGE_WEBHOOK_PUBLIC_KEY',
]

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** One line per missing or contradictory variable in production; empty in the sandbox. */
export function productionErrors(given: Given): string[] {
  if (given.MODE !== 'production') return []
  const missing = needs(given)
    .filter((name) => given[name] === undefined)
    .map((name) => `${name}: missing; it has no default in production`)
  return [...missing, ...contradictions(given)]
}

function contradictions(given: Given): string[] {
  const { PUBLIC_ORIGIN: origin = '', SESSION_SECRET: session, DATA_KEY: data, CHAIN: chain } = given
  const { CHAIN_SPONSOR_KEY: sponsor, CHAIN_OWNER_KEY: owner, CHAIN_OWNER_KEY_PREVIOUS: former } = given
  const isPlain = URL.canParse(origin) && new URL(origin).protocol === 'http:'
  const isSame = (one: string | undefined, other: string | undefined) =>
    one !== undefined && one.toLowerCase() === other?.toLowerCase()
  return [
    isPlain && !LOOPBACK.has(new URL(origin).hostname)
      ? 'PUBLIC_ORIGIN: must be https in production; only a loopback address may be http'
      : [],
    isSame(session, data)
      ? 'DATA_KEY: must differ from SESSION_SECRET, so that leaking one does not expose both'
      : [],
    isSame(sponsor, owner)
      ? 'CHAIN_OWNER_KEY: must differ from CHAIN_SPONSOR_KEY: one owns wallets, the other pays gas'
      : [],
    isSame(sponsor, former)
      ? 'CHAIN_OWNER_KEY_PREVIOUS: must differ from CHAIN_SPONSOR_KEY: one owns wallets, the other pays gas'
      : [],
    chain === undefined
      ? []
      : `CHAIN: "${chain}" is a sandbox chain; production uses CHAINS and CHAIN_RPC_URL_…`,
    given.SANDBOX_MARKET_HOURS === undefined
      ? []
      : 'SANDBOX_MARKET_HOURS: applies to the sandbox only; production uses the broker’s hours',
    given.SMTP_URL !== undefined && given.SMTP_FROM === undefined
      ? 'SMTP_FROM: missing; SMTP_URL requires it'
      : [],
  ].flat()
}
