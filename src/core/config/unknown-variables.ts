/** Finds settings that are probably misspelt, because a misspelt one is silently without effect. */
import { nearestTo } from '../base/nearest.ts'
import { isSecretFile } from './secret-files.ts'

/** Beginnings that only settings of this program have; other programs share the rest, such as `DATA_` or `HTTP_`. */
const prefixes =
  /^(ACROSS|ALPACA|AML|ANVIL|AWS_KMS|BRIDGE|BURSAR|CARD|CCTP|CDP|CHAIN|FOUNDER|GCP_KMS|GUEST|KYC|LIFI|LITHIC|METRICS|OIDC|PEG|PKCS11|RECEIPT|RELAY|SANCTIONS|SANDBOX|SCREENING|SMTP|SUMSUB|SWAP|TELEGRAM|TRAVEL_RULE|TRUSTED|TWILIO|VASP|VIRTUAL_ACCOUNTS|X402|ZEROX)_/

/** Settings that the schema does not list: of an OpenID provider, of a rate, and of the command line. */
const others =
  /^(OIDC_\w+_(ISSUER|CLIENT_ID|CLIENT_SECRET|SCOPE)|RATE_\w+|BURSAR_(URL|SESSION|WEBHOOK_SECRET|WRITE_CODE))$/

/** Kubernetes sets these for every service, such as `BRIDGE_SERVICE_HOST` and `REDIS_PORT_6379_TCP`. */
const serviceLinks = /_SERVICE_(HOST|PORT(_\w+)?)$|_PORT(_\d+_(TCP|UDP)(_\w+)?)?$/

/** Shorter names have near misses among everybody's variables. */
const MIN_LENGTH = 6

export interface UnknownVariable {
  readonly name: string
  /** The setting that is probably meant. */
  readonly nearest: string | null
}

/** @param env the environment. @param known every setting. */
export function findUnknownVariables(
  env: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): UnknownVariable[] {
  const settings = new Set(known)
  const isKnown = (name: string) => settings.has(name) || others.test(name) || isSecretFile(name)
  return Object.keys(env)
    .filter((name) => env[name] !== undefined && !isKnown(name) && !serviceLinks.test(name))
    .flatMap((name) => {
      const nearest = findNearest(name, known)
      const isOurs = prefixes.test(name) || nearest !== null
      return isOurs ? [{ name, nearest }] : []
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1))
}

function findNearest(name: string, known: readonly string[]): string | null {
  const maxEdits = name.length < MIN_LENGTH ? 0 : name.length < 9 ? 1 : prefixes.test(name) ? 4 : 2
  const longer = known.filter((other) => other.length >= MIN_LENGTH)
  return maxEdits === 0 ? null : nearestTo(name, longer, maxEdits)
}
