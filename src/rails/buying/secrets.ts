/** Members of a purchase that no record has: logins at the seller. Fingerprints, approvals and hashes are of the rest. */

/** Field names that carry logins, also those of single vendors, such as `X-Goog-Api-Key`. */
const SECRET_FIELD =
  /^(cookie|(x-)?(auth|token))$|(^|-)(authorization|((rapid)?api|auth|access|secret|subscription|functions)-?key|(auth|access|session|security|refresh|csrf|xsrf)-?token|secret|password|credentials?)$/i

/** Longest body that waits for an approval. */
const MAX_KEPT_CHARACTERS = 65_536

export function isSecretField(name: string): boolean {
  return SECRET_FIELD.test(name)
}

/** @returns the input itself if it has no secrets. */
export function withoutSecrets(input: unknown): unknown {
  if (!isRecord(input)) return input
  const { authorization, headers, ...rest } = input
  const fields = isRecord(headers) ? Object.entries(headers) : []
  const kept = fields.filter(([name]) => !isSecretField(name))
  if (authorization === undefined && kept.length === fields.length) return input
  return {
    ...rest,
    ...(headers === undefined || kept.length === 0 ? {} : { headers: Object.fromEntries(kept) }),
  }
}

/** Leaves out what an approval does not keep: secrets, and a long body. @returns the input itself if it has neither. */
export function keepable(input: unknown): unknown {
  const kept = withoutSecrets(input)
  if (!isRecord(kept)) return kept
  const { body, bodyBase64, ...rest } = kept
  const isLong = [body, bodyBase64].some(
    (given) => given !== undefined && (JSON.stringify(given) ?? '').length > MAX_KEPT_CHARACTERS + QUOTES,
  )
  return isLong ? rest : kept
}

/** Around a text in JSON. */
const QUOTES = 2

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
