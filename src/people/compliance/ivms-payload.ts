/** Travel Rule payloads between institutions. @see https://intervasp.org (IVMS101.2023) */
import { Failure } from '../../core/failures/failure.ts'

/** A person or an organisation. @property identification identifier at its institution. */
export interface Party {
  readonly name: string
  readonly isLegal: boolean
  readonly country: string | null
  readonly identification: string
  readonly account: string
}

/** An institution. @property lei Legal Entity Identifier; null when unknown. */
export interface Institution {
  readonly name: string
  readonly lei: string | null
}

/** Maximum length of `customerIdentification` in the standard. */
const MAX_IDENTIFICATION_LENGTH = 50

/** Builds the payload of a transfer. @throws Failure `invalid_request` when the standard does not accept it. */
export async function ivmsPayload({
  originator,
  beneficiary,
  originatingVasp,
  beneficiaryVasp,
}: {
  originator: Party
  beneficiary: Party
  originatingVasp: Institution
  beneficiaryVasp: Institution | null
}): Promise<Readonly<Record<string, unknown>>> {
  // Loaded on demand, because the package includes its generators of test data.
  const { IVMS101_2023Schema, PayloadVersionCode } = await import('ivms101')
  const payload = {
    originator: { originatorPerson: [toPerson(originator)] },
    beneficiary: { beneficiaryPerson: [toPerson(beneficiary)] },
    originatingVASP: toInstitution(originatingVasp),
    ...(beneficiaryVasp === null ? {} : { beneficiaryVASP: toInstitution(beneficiaryVasp) }),
    payloadMetadata: { payloadVersion: PayloadVersionCode.V2023 },
  }
  const { error } = IVMS101_2023Schema.safeParse(payload)
  if (error === undefined) return payload
  const issues = error.issues.map(({ path, message }) => ({ path: path.map(String).join('.'), message }))
  throw new Failure('invalid_request', 'IVMS101.2023 does not accept this Travel Rule data.', {
    issues,
    hint: 'Correct the members in "issues"; their paths refer to the payload.',
  })
}

function toPerson({ name, isLegal, country, identification, account }: Party) {
  const shared = { customerIdentification: identification.slice(0, MAX_IDENTIFICATION_LENGTH) }
  const accountNumber = [account]
  if (isLegal)
    return {
      legalPerson: {
        name: legalName(name),
        ...shared,
        ...(country === null ? {} : { countryOfRegistration: toCountry(country) }),
      },
      accountNumber,
    }
  return {
    naturalPerson: {
      // The family name cannot be determined reliably, so the whole name is the primary identifier.
      name: { nameIdentifier: [{ primaryIdentifier: name, naturalPersonNameIdentifierType: 'LEGL' }] },
      ...shared,
      ...(country === null ? {} : { countryOfResidence: toCountry(country) }),
    },
    accountNumber,
  }
}

/** The standard accepts ISO 3166-1 codes only, and XX for others such as Kosovo. */
function toCountry(code: string): string {
  return code === 'XK' ? 'XX' : code
}

function toInstitution({ name, lei }: Institution) {
  // Every legal person must be identified; one without a known LEI is identified by its name.
  const identified =
    lei === null
      ? { customerIdentification: name.slice(0, MAX_IDENTIFICATION_LENGTH) }
      : { nationalIdentification: { nationalIdentifier: lei, nationalIdentifierType: 'LEIX' } }
  return { legalPerson: { name: legalName(name), ...identified } }
}

function legalName(name: string) {
  return { nameIdentifier: [{ legalPersonName: name, legalPersonNameIdentifierType: 'LEGL' }] }
}
