/** Identity verification in words. */
import type { Kyc } from '../../client/operations.ts'

interface Detail {
  readonly member: string
  readonly words: string
  readonly hint?: string
  readonly autocomplete: string
  readonly inputMode?: 'email' | 'tel'
  /** The largest number of letters that the gateway takes. */
  readonly most: number
}

/** Details that a level needs. */
export const identityDetails: readonly Detail[] = [
  { member: 'firstName', words: 'Given names', autocomplete: 'given-name', most: 80 },
  { member: 'lastName', words: 'Family name', autocomplete: 'family-name', most: 80 },
  { member: 'dateOfBirth', words: 'Date of birth', autocomplete: 'bday', most: 10 },
  {
    member: 'country',
    words: 'Country',
    hint: 'Two letters, such as DE or JP.',
    autocomplete: 'country',
    most: 2,
  },
]

/** The address, by its parts: reviewers, banks and brokers do not take one line. */
export const addressDetails: readonly Detail[] = [
  { member: 'street', words: 'Street and number', autocomplete: 'street-address', most: 120 },
  { member: 'postalCode', words: 'Postal code', autocomplete: 'postal-code', most: 20 },
  { member: 'city', words: 'City', autocomplete: 'address-level2', most: 80 },
  {
    member: 'state',
    words: 'State or province',
    hint: 'Where addresses have one.',
    autocomplete: 'address-level1',
    most: 80,
  },
]

/** Details that banks and brokers ask for besides. */
export const contactDetails: readonly Detail[] = [
  { member: 'email', words: 'E-mail', autocomplete: 'email', inputMode: 'email', most: 254 },
  {
    member: 'phone',
    words: 'Phone',
    hint: 'With the country, such as +49 151 12345678.',
    autocomplete: 'tel',
    inputMode: 'tel',
    most: 24,
  },
]

/** The word for a requirement, which is a path of the request such as `applicant.firstName`. */
export function requirementInWords(path: string): string {
  const member = lastMember(path)
  if (member === 'documents') return 'Identity document'
  if (member === 'address') return 'Address'
  const known = [...identityDetails, ...addressDetails, ...contactDetails]
  return known.find((one) => one.member === member)?.words ?? member
}

/** The `applicant` of a request, from what was typed; empty members are left out. */
export function toApplicant(typed: Readonly<Record<string, string>>): Record<string, unknown> {
  const pickGiven = (details: readonly Detail[]): Record<string, string> =>
    Object.fromEntries(
      details.flatMap(({ member }) => {
        const value = (typed[member] ?? '').trim()
        return value === '' ? [] : [[member, value]]
      }),
    )
  const { country, ...identity } = pickGiven(identityDetails)
  const { phone, ...contact } = pickGiven(contactDetails)
  const address = pickGiven(addressDetails)
  return {
    ...identity,
    ...contact,
    ...(country === undefined ? {} : { country: country.toUpperCase() }),
    ...(phone === undefined ? {} : { phone: phone.replaceAll(/[^+\d]/g, '') }),
    ...(Object.keys(address).length === 0 ? {} : { address }),
  }
}

/** `applicant.firstName` → `firstName`, `documents[0]` → `documents`. */
export function lastMember(path: string): string {
  return (path.split('.').at(-1) ?? path).replace(/\[\d*\]$/, '')
}

/** The reviewer's reasons. Codes become lower-case words. */
export function labelInWords(label: string): string {
  const known: Readonly<Record<string, string>> = {
    SANCTIONS_REVIEW: 'The name resembles one on a sanctions list. A person compares them.',
    IDENTITY_CHANGED: 'The data differs from an earlier application. A person compares them.',
    UNANSWERED: 'The reviewer did not answer. Send it again.',
  }
  const words = label.toLowerCase().replaceAll('_', ' ')
  return known[label] ?? `${words.charAt(0).toUpperCase()}${words.slice(1)}.`
}

export const outcomes: Readonly<Record<Kyc['status'], { readonly title: string; readonly words: string }>> = {
  init: { title: 'Not complete yet', words: 'Send what is missing, and the review begins.' },
  pending: { title: 'Under review', words: 'This takes a moment. It shows here as soon as it is decided.' },
  approved: { title: 'Verified', words: 'Nothing more is needed for this level.' },
  retry: { title: 'Not accepted', words: 'Correct your data and send it again.' },
  rejected: { title: 'Rejected', words: 'This cannot be applied for again. Ask the operator why.' },
}
