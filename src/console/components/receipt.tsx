/** The signed receipt of a decision, verified in the reader's own browser. */
import { useEffect, useState } from 'preact/hooks'
import { deployment } from '../data/account.ts'
import { Chip } from './marks.tsx'

type Finding = 'checking' | 'verified' | 'false' | 'unknown'

export function Receipt({
  decisionId,
  receipt,
}: {
  readonly decisionId: string
  readonly receipt: string | null
}) {
  const [finding, set] = useState<Finding>('checking')
  useEffect(() => {
    if (receipt === null) return
    let isCurrent = true
    verifyReceipt(receipt, decisionId)
      .catch(() => 'unknown' as const)
      .then((found) => {
        if (isCurrent) set(found)
      })
    return () => {
      isCurrent = false
    }
  }, [decisionId, receipt])
  if (receipt === null) return <span class="faint">None: this decision was not signed</span>
  if (finding === 'verified')
    return (
      <Chip kind="good" icon="check">
        Signature verified here
      </Chip>
    )
  if (finding === 'false')
    return (
      <Chip kind="bad" icon="warning">
        Signature does not fit
      </Chip>
    )
  return (
    <span class="faint">
      {finding === 'checking' ? 'Checking the signature' : 'Could not be checked now'}
    </span>
  )
}

/** Verifies the signature with the gateway's published keys, and that the receipt is of this decision. */
async function verifyReceipt(receipt: string, decisionId: string): Promise<'verified' | 'false'> {
  const { compactVerify, createLocalJWKSet, errors } = await import('jose')
  const answer = await fetch(`${deployment.origin}/.well-known/jwks.json`)
  const keys = createLocalJWKSet(await answer.json())
  try {
    const { payload } = await compactVerify(receipt, keys, { algorithms: ['EdDSA'] })
    const claims: unknown = JSON.parse(new TextDecoder().decode(payload))
    const isThis =
      typeof claims === 'object' &&
      claims !== null &&
      'decisionId' in claims &&
      claims.decisionId === decisionId
    return isThis ? 'verified' : 'false'
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed || error instanceof errors.JWKSNoMatchingKey)
      return 'false'
    throw error
  }
}
