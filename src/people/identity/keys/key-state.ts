/** Journal state of a key: limits and status, never its name or a secret. */
import { type Json, toJson } from '../../../core/base/json.ts'
import type { AccessKey } from '../../../core/base/principal.ts'

export function keyState({
  kind,
  status,
  scopes,
  policy,
  policyVersion,
  policyHash,
  expiresAt,
}: Pick<
  AccessKey,
  'kind' | 'status' | 'scopes' | 'policy' | 'policyVersion' | 'policyHash' | 'expiresAt'
>): Json {
  return toJson({
    kind,
    status,
    scopes,
    policy: policy ?? null,
    policyVersion,
    policyHash,
    expiresAt: expiresAt?.toISOString() ?? null,
  })
}
