/** A company as a provider returns it, with the fields that are usually known. */
export const companyRecord = (number: number) =>
  ({
    match_type: 'company',
    network: { connection_type: 'corporate', audience_type: 'business', is_isp: false },
    company: {
      name: `Example Company ${number} Ltd`,
      website: `https://company-${number}.example`,
      brand_name: `Company ${number}`,
      industry: 'Technology',
      industry_subcategory: 'Internet Services',
      city: 'Mountain View',
      region: 'California',
      postal_code: '94043',
      country_code: 'US',
      country_name: 'United States',
      employees: 250,
    },
  }) as const;
